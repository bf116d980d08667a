"""The routes of two earlier memory services."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Call
from starlette.responses import Response
from starlette.routing import Route

from memlog.service import seeds
from memlog.service.http.bodies import answering, object_of
from memlog.service.open_stores import DEFAULT, OpenStores
from memlog.service.requests.seeds import CreateMemory
from memlog.service.store import Store

_MEMORIES = "/api/sessions/{session:path}/memories"


def seed_routes(stores: OpenStores) -> list[Route]:
    """The routes, for an application."""
    one = f"{_MEMORIES}/{{memory}}"
    return [
        *(
            Route(path, answering(partial(_of_project, stores, *what)), methods=["POST"])
            for path, what in seeds.ROUTES.items()
        ),
        Route("/v1/projects/{project:path}/chat", answering(partial(_routed, stores)), methods=["POST"]),
        Route(_MEMORIES, answering(partial(_of_session, stores, seeds.list_memories, 200)), methods=["GET"]),
        Route(_MEMORIES, answering(partial(_created, stores)), methods=["POST"]),
        Route(one, answering(partial(_of_session, stores, seeds.get_memory, 200)), methods=["GET"]),
        Route(one, answering(partial(_of_session, stores, seeds.delete_memory, 204)), methods=["DELETE"]),
    ]


async def _of_project(
    stores: OpenStores, request: type[Any], does: Callable[[Store, Any], Any], call: Call
) -> Response:
    given = await object_of(call)

    def answered() -> Any:  # noqa: ANN401
        asked = request.of(given)
        return stores.run(asked.project_id, lambda store: does(store, asked))

    return await _answered(answered, 200)


async def _routed(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    project = call.path_params["project"]
    return await _answered(lambda: stores.run(project, lambda store: seeds.route(store, given)), 200)


async def _of_session(stores: OpenStores, does: Callable[..., Any], status: int, call: Call) -> Response:
    named = call.path_params.values()
    return await _answered(lambda: stores.run(DEFAULT, lambda store: does(store, *named)), status)


async def _created(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    session = call.path_params["session"]

    def created(store: Store) -> Any:  # noqa: ANN401
        return seeds.create_memory(store, session, CreateMemory.of(given))

    return await _answered(lambda: stores.run(DEFAULT, created), 201)


async def _answered(does: Callable[[], Any], status: int) -> Response:
    found = await run_in_threadpool(does)
    body = b"" if status == 204 else msgspec.json.encode(found)
    return Response(body, status, media_type="application/json" if body else None)
