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
from memlog.service.catalogue import answer
from memlog.service.http.bodies import answering, object_of
from memlog.service.open_stores import DEFAULT, OpenStores
from memlog.service.requests.seeds import CreateMemory, GetFacts, IndexChatMessage, SearchProject, StoreFact
from memlog.service.store import Store

_MEMORIES = "/api/sessions/{session}/memories"
_OF_PROJECT: dict[str, tuple[type[Any], Callable[[Store, Any], Any]]] = {
    "/search": (SearchProject, seeds.search),
    "/index-chat-message": (IndexChatMessage, seeds.index_message),
    "/facts/store": (StoreFact, seeds.store_fact),
    "/facts/get": (GetFacts, seeds.get_facts),
}


def seed_routes(stores: OpenStores) -> list[Route]:
    """The routes, for an application."""
    one = f"{_MEMORIES}/{{memory}}"
    return [
        *(
            Route(path, answering(partial(_of_project, stores, *what)), methods=["POST"])
            for path, what in _OF_PROJECT.items()
        ),
        Route("/v1/projects/{project}/chat", answering(partial(_routed, stores)), methods=["POST"]),
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
        return does(stores.store(asked.project_id), asked)

    return await _answered(answered, 200)


async def _routed(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    project = call.path_params["project"]
    return await _answered(lambda: answer(stores.store(project), "pre_route", given), 200)


async def _of_session(stores: OpenStores, does: Callable[..., Any], status: int, call: Call) -> Response:
    return await _answered(lambda: does(stores.store(DEFAULT), *call.path_params.values()), status)


async def _created(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    session = call.path_params["session"]
    return await _answered(
        lambda: seeds.create_memory(stores.store(DEFAULT), session, CreateMemory.of(given)), 201
    )


async def _answered(does: Callable[[], Any], status: int) -> Response:
    found = await run_in_threadpool(does)
    body = b"" if status == 204 else msgspec.json.encode(found)
    return Response(body, status, media_type="application/json" if body else None)
