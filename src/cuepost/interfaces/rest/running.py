"""Runs handlers: in a snapshot, in a transaction, or once per Idempotency-Key."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from cuepost.application.service import Service
from cuepost.interfaces.rest.answers import Rendered, Reply, keep, kept
from cuepost.interfaces.rest.operation import Body, Call, Context, Query, Run
from cuepost.interfaces.rest.problems import problem_of
from cuepost.ports.store import Transaction

Handler = Callable[[Service, Transaction, Call[Body, Query]], Awaitable[Reply]]


def reading(handler: Handler[Body, Query]) -> Run:
    async def run(context: Context, call: Call[Any, Any]) -> Rendered:
        async def look(transaction: Transaction) -> Reply:
            return await handler(context.service, transaction, call)

        return context.render(await context.service.perform.read(look))

    return run


def browsing(handler: Handler[Body, Query]) -> Run:
    """For lists of history, which may be read from a replica; the response has its lag."""

    async def run(context: Context, call: Call[Any, Any]) -> Rendered:
        async def look(transaction: Transaction) -> Reply:
            return await handler(context.service, transaction, call)

        found = await context.service.perform.browse(look)
        rendered = context.render(found.value)
        if found.lag_seconds:
            rendered = replace(rendered, headers=((b"replica-lag", b"%d" % found.lag_seconds),))
        return rendered

    return run


def changing(handler: Handler[Body, Query]) -> Run:
    async def run(context: Context, call: Call[Any, Any]) -> Rendered:
        async def act(transaction: Transaction) -> Rendered:
            return context.render(await handler(context.service, transaction, call))

        async def act_and_keep(transaction: Transaction) -> bytes:
            return keep(await act(transaction))

        perform = context.service.perform
        if call.idempotent is None:
            return await perform.change_by(call.caller, act)
        answer = await perform.once(
            call.caller,
            call.idempotent,
            act_and_keep,
            lambda refused: keep(problem_of(refused)),
        )
        return kept(answer.content, replayed=answer.replayed)

    return run
