"""Runs tools: decodes arguments, runs the use case in a transaction, encodes the result."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from cuepost.application.admission import RequestDeadline
from cuepost.application.perform import Browsed
from cuepost.application.service import Service
from cuepost.domain.access import Caller
from cuepost.domain.errors import FieldError, Invalid, Refused
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import ResponseModel
from cuepost.interfaces.wire_models.unavailable import why_unavailable
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable, Transaction

logger = logging.getLogger("cuepost.mcp")

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool as text and as data, with an optional remark."""

    text: str
    data: dict[str, Any]
    is_error: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Calls:
    service: Service

    async def call(self, caller: Caller, tool: Tool, given: Mapping[str, Any]) -> ToolResult:
        """Turn every outcome, also an error, into a result."""
        try:
            caller.require(tool.scope)
            with RequestDeadline(self.service.request_timeout):
                done = await self._carry_out(caller, tool, _arguments(tool, given))
        except Refused as refusal:
            return refused(refusal)
        except (StoreUnavailable, Contention) as error:
            log_store_error(logger, "store_unavailable", error, f"mcp:{tool.name}")
            wait = self.service.retry_after()
            return _failed("store_unavailable", why_unavailable(error), retry_after_seconds=wait)
        except Exception:
            logger.exception("event=internal_error tool=%s", tool.name)
            return _failed(
                "internal_error",
                "An internal error occurred; the operator of the service can find it in the log.",
            )
        encoded = _encode(done.value)
        return ToolResult(encoded.decode(), msgspec.json.decode(encoded), remark=_remark(done))

    async def _carry_out(
        self, caller: Caller, tool: Tool, arguments: Arguments
    ) -> Browsed[ResponseModel]:
        async def act(transaction: Transaction) -> ResponseModel:
            return await tool.run(ToolContext(self.service, transaction, caller), arguments)

        perform = self.service.perform
        try:
            if tool.may_lag:
                return await perform.browse(act)
            if tool.reads:
                return Browsed(await perform.read(act))
            return Browsed(await perform.change_by(caller, act))
        except Invalid as invalid:
            raise _in_arguments(invalid) from None


def _remark(done: Browsed[ResponseModel]) -> str:
    if not done.lag_seconds:
        return ""
    return f"This may be {done.lag_seconds} s old: the replica that it was read from lags behind."


def refused(refusal: Refused) -> ToolResult:
    """The code, the message, and the errors of all fields."""
    errors = refusal.errors if isinstance(refusal, Invalid) else ()
    code = errors[0].code if len(errors) == 1 else refusal.code
    lines = [str(refusal)] if not errors else [f"{each.field}: {each.message}" for each in errors]
    error: dict[str, Any] = {"code": code, "message": " ".join(lines), **refusal.details}
    if errors:
        error["errors"] = msgspec.to_builtins(errors)
    return ToolResult(f"{code}: {error['message']}", {"error": error}, is_error=True)


def _in_arguments(invalid: Invalid) -> Invalid:
    """Rename fields from the camelCase of the use cases to the snake_case of arguments."""
    errors = (replace(each, field=_snake_case(each.field)) for each in invalid.errors)
    return type(invalid)(*errors, message=str(invalid))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _failed(code: str, sentence: str, **details: Any) -> ToolResult:
    error = {"code": code, "message": sentence, **details}
    return ToolResult(f"{code}: {sentence}", {"error": error}, is_error=True)


def _arguments(tool: Tool, given: Mapping[str, Any]) -> Arguments:
    """Decode as strictly as REST decodes a body."""
    try:
        return msgspec.json.decode(_encode(given), type=tool.arguments)
    except msgspec.ValidationError as error:
        raise Invalid(field_error(str(error), tool.arguments)) from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Invalid(
            FieldError("arguments", "malformed_json", "The arguments are not valid JSON.")
        ) from None
