"""Access control of the lab: who may request what, and the headers of every response.

A page of another site can make a browser send requests to this machine: by a host name that it resolves to this machine
(DNS rebinding), or directly to the port. So the Host of every request and socket must be a name of the lab, and the
Origin must be the lab itself. If other machines can reach the lab, a token is required, too.
"""

import hmac
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), clipboard-write=(self)",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Admission:
    """Who is admitted.

    Attributes:
        hosts: Host headers that are answered, in lower case and with the port, such as `localhost:8765`; the address at
            which a connection arrived is always one of them.
        token: The token that a browser sends once in the address and then in a cookie; None if not needed.
        cookie: Name of that cookie. It holds the port, because cookies of one host are shared by all of its ports.
    """

    hosts: frozenset[str]
    token: str | None = None
    cookie: str = "backcast-lab"


class Guard:
    """Passes admitted requests to an application."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or socket."""
        answer: ASGIApp = self._refusal(scope) or self._app
        if scope["type"] == "websocket" and answer is not self._app:
            answer = WebSocketClose()  # before it was opened: the browser is told 403 and shows no page anyway
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """The response to a refused request; None if it is admitted."""
        asking, socket = HTTPConnection(scope), scope["type"] == "websocket"
        host, origins = asking.headers.get("host", "").lower(), asking.headers.getlist("origin")
        if host not in self._admission.hosts | _arrived_at(scope):
            return _refused(421, f"This lab is not {host!r}; see backcast lab --allow-host.")
        if any(origin.lower() not in (f"http://{host}", f"https://{host}") for origin in origins):
            return _refused(403, "Other sites may not use this lab.")
        if socket and not origins:
            return _refused(403, "A socket has to say which page it belongs to (Origin).")
        if not socket and scope["method"] not in METHODS:
            return _refused(405, f"{scope['method']}: this lab answers GET and HEAD only.", Allow=", ".join(METHODS))
        return self._refusal_without_token(asking)

    def _refusal_without_token(self, asking: HTTPConnection) -> Response | None:
        token, cookie = self._admission.token, self._admission.cookie
        if token is None or _same(asking.cookies.get(cookie, ""), token):
            return None
        if asking.scope["path"] == "/" and _same(asking.query_params.get("token", ""), token):
            keep = f"{cookie}={token}; Path=/; HttpOnly; SameSite=Lax"
            return Response(status_code=303, headers={"Location": "/", "Set-Cookie": keep} | NOT_KEPT)
        return _refused(
            401, "This lab asks for a token: type or paste the address that it printed where it was started."
        )


NOT_KEPT = {"Cache-Control": "no-store"}


def _refused(status: int, sentence: str, **headers: str) -> Response:
    return PlainTextResponse(sentence + "\n", status, headers | NOT_KEPT)


def _arrived_at(scope: Scope) -> frozenset[str]:
    """The Host header of a request for the very address to which it came: no name, so nothing to be rebound."""
    address, port = scope["server"]
    address = address.removeprefix("::ffff:")
    return frozenset({with_port(address, port)})


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode(), token.encode())


def with_port(host: str, port: int) -> str:
    """A name or address with a port, as a browser writes it.

    >>> with_port("::1", 8765)
    '[::1]:8765'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
