"""Names of what programs are made with, as `folded` spells them."""

import re

LANGUAGES = frozenset(
    "ada assembly bash c c# c++ clojure cobol cpp crystal css dart delphi elixir elm erlang f# fortran go"
    " golang groovy haskell html java javascript js julia kotlin lisp lua matlab nim node node.js"
    " objective-c ocaml perl php powershell prolog python r racket ruby rust scala scheme shell sh"
    " solidity sql swift tcl ts typescript vb vba zig".split()
)
"""Programming languages."""

_FRAMEWORKS = (
    "angular angularjs astro axum bootstrap celery django express express.js fastapi flask flutter gin"
    " hibernate ionic jquery keras ktor laravel micronaut nest nestjs next.js nextjs nuxt numpy pandas"
    " phoenix prisma pydantic pytorch qt quarkus rails react react.js react-native redux rocket scipy"
    " solid spring sqlalchemy starlette svelte sveltekit symfony tailwind tensorflow tokio vue vue.js"
    " vuejs wordpress xamarin"
)
_DATABASES = (
    "cassandra clickhouse cockroachdb couchdb dynamodb elasticsearch firebase firestore influxdb kafka"
    " mariadb memcached mongo mongodb mssql mysql neo4j oracle postgres postgresql rabbitmq redis snowflake"
    " sqlite sqlite3 supabase"
)
_TOOLS = (
    "ansible aws azure babel bazel black bun bundler cargo circleci cloudflare cmake composer cypress deno"
    " docker docker-compose esbuild eslint flake8 gcc gcp git github gitlab gradle grafana graphql grpc"
    " heroku helm jenkins jest jira jwt k8s kubernetes linux llvm make maven mercurial mocha mypy netlify"
    " nginx npm nuget oauth oauth2 openapi pip pipenv playwright pnpm podman poetry prettier prometheus"
    " pytest rest rollup rspec ruff selenium storybook subversion swagger terraform tox uv uvicorn vercel"
    " vite vitest webpack yarn"
)
_OF_WORDS = (
    "github actions|gitlab ci|google cloud|docker compose|next js|react native|ruby on rails|spring boot"
    "|sql server|tailwind css|vs code|visual studio|microservices|serverless"
)

TECHNOLOGIES = LANGUAGES.union(_FRAMEWORKS.split(), _DATABASES.split(), _TOOLS.split(), _OF_WORDS.split("|"))
"""Languages, frameworks, databases and tools."""

BEGINS = re.compile(
    rf"(?:{'|'.join(map(re.escape, sorted(TECHNOLOGIES, key=len, reverse=True)))})"
    r"(?:-kiel\w+|:?(?:a|ä|ää|lla|llä|ssa|ssä))?(?!['’]|-?\w)"
)
"""A text that begins with one, perhaps with a Finnish ending."""
