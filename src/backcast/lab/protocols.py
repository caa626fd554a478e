"""Uvicorn's protocols with the security headers on every response, and with a response to every request.

Most responses come from the application, but not all: input that is not HTTP, or not a WebSocket handshake, never
reaches it. So the headers are added where responses become bytes, which is one place in h11 and one in websockets.
"""

import logging
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Response
from websockets.server import ServerProtocol

from backcast.lab.guard import HEADERS

LONGEST_HEAD = 32 * 1024  # the most bytes of the head of a request
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_NO_HANDSHAKE = "This is not how a WebSocket is opened.\n"
_NO_TEXT = "a text message has to be UTF-8"


class Http(H11Protocol):
    """HTTP. Other input ends the connection, after a response unless one was begun."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _HttpConnection(h11.SERVER, LONGEST_HEAD)

    def send_400_response(self, msg: str) -> None:
        """Respond to input that is not HTTP; the application can no longer respond."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()


class Socket(WebSocketsSansIOProtocol):
    """A WebSocket. An invalid handshake gets a response; invalid text ends the connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _SocketConnection(max_size=self.config.ws_max_size, logger=logging.getLogger("uvicorn.error"))

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse()

    async def send(self, message: Any) -> None:
        """Send a message of the application, unless the connection is closed."""
        if self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)

    def send_receive_event_to_app(self) -> None:
        """Pass a message to the application."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(b"".join(self.frames)):
            self.frames = []
            self.conn.send_close(1007, _NO_TEXT)
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def _refuse(self) -> None:
        """Send the response of websockets to an invalid handshake, if there is one, and close."""
        answer = b"".join(self.conn.data_to_send())
        self.transport.write(answer or _with_headers(self.conn.reject(400, _NO_HANDSHAKE)).serialize())
        self.transport.close()


class _HttpConnection(h11.Connection):
    """Adds the headers to every response."""

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return the bytes of an event, in pieces."""
        if isinstance(event, h11.Response):
            given = dict(event.headers)
            lacking = [(name, value) for name, value in _HEADERS if name not in given]
            headers: list[tuple[bytes, bytes]] = [*event.headers, *lacking]
            event = h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
        return super().send_with_data_passthrough(event)


class _SocketConnection(ServerProtocol):
    """Adds the headers to every response to a handshake."""

    def send_response(self, response: Response) -> None:
        """Send a response."""
        super().send_response(_with_headers(response))


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
