"""`irscope view`: who gets what from its server, and that it answers as the language server does."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from irscope.lowering import LoweringError
from irscope.protocol import Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from irscope_server.view import address, assets, web
from irscope_server.view.reader import READING, Reader
from irscope_server.view.view_options import Wishes, wishes_of
from made import GRAPH, SCRIPT, compile_of, finding

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def run(store_path: str, script: Path) -> str:
    """A run of the script with one graph."""
    with Store(store_path) as store:
        run = store.create_run(str(script), [], Lane.DEEP, "digest")
        store.set_torch(run, "2.13.0")
        store.put_compile(run, compile_of(str(script)))
        text = GRAPH.format(script=script)
        store.put_stage(run, "0/0", StageRef("0/0/forward-graph", "forward-graph", "python", len(text)), text, 1.0)
        store.put_source(run, str(script), SCRIPT)
        store.put_finding(run, finding(str(script), 6, message=EVIL))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    return run


@pytest.fixture
def server(store_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[web.ViewServer]:
    built = tmp_path / "dist"
    built.mkdir()
    for name in ("view.js", "view.css", "theme.css", "graph.js", "graph.css"):
        (built / name).write_text(f"/* {name} */")
    (built / "extension.js").write_text("secret of the extension")
    monkeypatch.setattr(assets, "folder", lambda: str(built))
    server = web.ViewServer(Reader(store_path), "right-token")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    server.reader.close()


class Browser:
    """Asks as a browser does; `session` holds the cookie."""

    def __init__(self, server: web.ViewServer) -> None:
        self.port = server.address.port
        self.session = f"irscope-view-{self.port}=right-token"

    def __call__(
        self, method: str, path: str, body: Any = None, *, session: bool = True, **headers: str | None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        given = {
            "Host": f"127.0.0.1:{self.port}",
            "Origin": f"http://127.0.0.1:{self.port}" if method == "POST" else None,
            "Content-Type": "application/json" if method == "POST" else None,
            "Cookie": self.session if session else None,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        if method == "POST" and "Content_Length" not in headers:
            connection.putheader("Content-Length", str(len(data or b"")))
        connection.endheaders(data)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def ask(self, method: str, **params: Any) -> Any:
        status, _, body = self("POST", "/request", {"method": method, "params": params})
        assert status == 200, body
        return json.loads(body)


@pytest.fixture
def browser(server: web.ViewServer) -> Browser:
    return Browser(server)


# --- who gets in ------------------------------------------------------------------------------------------------------


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(browser: Browser, run: str) -> None:
    status, headers, _ = browser("POST", "/session", {"token": "right-token"}, session=False)
    assert status == 204
    cookie = headers["Set-Cookie"]
    assert cookie.startswith(f"irscope-view-{browser.port}=") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    browser.session = cookie.partition(";")[0]
    assert [each["run"] for each in browser.ask("irscope/runs")["result"]["runs"]] == [run]


@pytest.mark.parametrize("token", ["", "wrong", "right-toke", "right-token2", None, 7, ["right-token"], "ü"])
def test_another_token_gets_no_session(browser: Browser, token: object) -> None:
    status, headers, body = browser("POST", "/session", {"token": token}, session=False)
    assert (status, headers["Set-Cookie"]) == (401, None)
    assert b"irscope view" in body, "it says what to do"


@pytest.mark.parametrize("cookie", [None, "", "irscope-view-{port}=wrong", "irscope-view-1=right-token", "right-token"])
def test_without_the_cookie_there_is_no_data(browser: Browser, run: str, cookie: str | None) -> None:
    browser.session = cookie.format(port=browser.port) if cookie is not None else ""
    for answer in (
        browser("POST", "/request", {"method": "irscope/runs", "params": {}}),
        browser("GET", "/events"),
    ):
        assert answer[0] == 401
        assert run.encode() not in answer[2]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1:80@evil.example", "", "0.0.0.0"])
def test_a_name_that_somebody_pointed_here_gets_nothing(browser: Browser, run: str, host: str) -> None:
    """DNS rebinding: the browser then sends its cookie, but the Host tells."""
    for method, path, body in (("GET", "/", None), ("POST", "/request", {"method": "irscope/runs", "params": {}})):
        status, _, said = browser(method, path, body, Host=host, Origin=f"http://{host}")
        assert status == 421
        assert run.encode() not in said


def test_a_tunnel_may_have_another_port_and_name(browser: Browser, run: str) -> None:
    for host in ("localhost:9999", "127.0.0.1:9999", "[::1]:9999"):
        status, _, body = browser(
            "POST", "/request", {"method": "irscope/runs", "params": {}}, Host=host, Origin=f"http://{host}"
        )
        assert status == 200 and run.encode() in body


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_a_page_of_another_origin_may_not_ask(browser: Browser, run: str, origin: str | None) -> None:
    origin = origin and origin.format(port=browser.port)
    for path, body in (("/request", {"method": "irscope/runs", "params": {}}), ("/session", {"token": "right-token"})):
        status, headers, said = browser("POST", path, body, Origin=origin)
        assert (status, headers["Set-Cookie"]) == (403, None)
        assert run.encode() not in said


def test_a_form_of_another_site_cannot_be_read_as_a_request(browser: Browser, run: str) -> None:
    body = json.dumps({"method": "irscope/runs", "params": {}}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert browser("POST", "/request", body, Content_Type=kind)[0] == 415


# --- what there is ----------------------------------------------------------------------------------------------------


def test_the_page_holds_no_data_and_lets_only_its_own_scripts_run(browser: Browser, run: str) -> None:
    for path in ("/", "/panel/graph?theme=light&run=x", "/#token=x"):
        status, headers, body = browser("GET", path.partition("#")[0], session=False)
        assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
        policy = headers["Content-Security-Policy"]
        nonce = re.search(r"script-src 'nonce-([\w-]{20,})'", policy)
        assert nonce and f'<script nonce="{nonce[1]}"'.encode() in body
        assert "default-src 'none'" in policy and "unsafe-" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert run.encode() not in body
    first, second = (browser("GET", "/")[1]["Content-Security-Policy"] for _ in range(2))
    assert first != second, "a nonce is used once"


def test_only_a_known_theme_gets_into_the_page(browser: Browser) -> None:
    assert b'data-theme="light"' in browser("GET", "/panel/graph?theme=light")[2]
    assert b"onload" not in browser("GET", "/panel/graph?theme=%22%20onload%3D%22alert(1)")[2]


def test_panels_are_those_that_were_built(browser: Browser, server: web.ViewServer) -> None:
    built = Path(assets.folder() or "")
    for name in ("ranks.js", "ranks.css", "dock.js", "dock.css", "half.js"):
        (built / name).write_text(f"/* {name} */")
    assert b'data-panels="graph ranks"' in browser("GET", "/")[2]
    assert browser("GET", "/panel/ranks")[0] == 200
    assert browser("GET", "/static/ranks.js")[2] == b"/* ranks.js */"
    assert [browser("GET", f"/{path}")[0] for path in ("panel/dock", "static/dock.js", "static/half.js")] == [404] * 3


@pytest.mark.parametrize(
    "path",
    [
        "/static/extension.js",
        "/static/../dist/extension.js",
        "/static/..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/extension.js",
        "/static//etc/passwd",
        "/static/",
        "/static",
        "//etc/passwd",
        "/etc/passwd",
        "/panel/",
        "/panel/extension",
        "/panel/../view",
        "/panel/graph/..",
        "/session",
        "/request",
        "/open",
    ],
)
def test_nothing_else_is_served(browser: Browser, path: str) -> None:
    status, _, body = browser("GET", path)
    assert status == 404
    assert b"secret" not in body and b"root:" not in body


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_refused(browser: Browser, method: str) -> None:
    status, headers, body = browser(method, "/")
    assert status == 405
    assert headers["Access-Control-Allow-Origin"] is None
    assert method.encode() not in body


def test_only_requests_that_read_are_answered(browser: Browser, run: str, script: Path) -> None:
    for method in (
        "irscope/run",
        "irscope/cancel",
        "irscope/checkWithoutCompile",
        "irscope/trusted",
        "irscope/entries",
        "initialize",
        "exit",
        "",
        "x",
    ):
        assert browser.ask(method, uri=script.as_uri()) == {
            "error": f"{method} is not a request that this page can send."
        }
    assert not {"irscope/run", "irscope/cancel"} & set(READING)


def test_it_answers_as_the_language_server_does(browser: Browser, run: str, script: Path) -> None:
    tree = browser.ask("irscope/report", run=run)["result"]
    assert tree["item"]["scriptUri"] == script.as_uri()
    [stage] = tree["compiles"][0]["stages"]
    assert stage["isGraph"] is True
    document = browser.ask("irscope/document", uri=stage["uri"])["result"]
    assert document == {"text": GRAPH.format(script=script), "languageId": "python"}
    assert "nodes" in browser.ask("irscope/graph", run=run, stage=stage["stage"])["result"]


def test_a_source_is_shown_as_it_ran_and_only_where_the_run_tells_of_it(
    browser: Browser, run: str, script: Path, tmp_path: Path
) -> None:
    script.write_text("# edited since\n")
    other = tmp_path / "other.py"
    other.write_text("password = 1")
    source = browser.ask("view/source", run=run, uri=script.as_uri())
    assert source == {"result": {"text": SCRIPT, "languageId": "python", "current": True}}
    for uri in (other.as_uri(), "file:///etc/passwd", "http://x/y", "irscope:/a/b.py", ""):
        assert "error" in browser.ask("view/source", run=run, uri=uri)
    assert "error" in browser.ask("view/source", run="unknown", uri=script.as_uri())


def test_the_newest_run_of_a_file(browser: Browser, run: str, script: Path, tmp_path: Path) -> None:
    assert browser.ask("view/latest", uri=script.as_uri()) == {"result": {"run": run}}
    assert browser.ask("view/latest", uri=(tmp_path / "x.py").as_uri()) == {"result": {"run": None}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 60_000, 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b'{"method": 7}', 400),
        (b'{"method": "irscope/report"}', 200),
        (b'{"method": "irscope/report", "params": []}', 200),
        (b'{"method": "irscope/report", "params": {"run": 7}}', 200),
        (b'{"method": "irscope/report", "params": {"run": "none"}}', 200),
        (b'{"method": "irscope/document", "params": {"uri": "irscope:/../../x"}}', 200),
        (rb'{"method": "irscope/report\ud800"}', 200),
        (rb'{"method": "irscope/report", "params": {"run": "\ud800"}}', 200),
        (rb'{"method": "irscope/document", "params": {"uri": "irscope:/\ud800/\udfff"}}', 200),
        (b'{"method": "irscope/report", "params": {"run": "\xed\xa0\x80", "\xed\xa0\x80": 1}}', 200),
        (b'{"method": "irscope/report", "params": {"run": ' + b"[" * 480 + b"]" * 480 + b"}}", 200),
        (b'{"method": "irscope/report", "params": {"run": ' + b"9" * 4000 + b"}}", 200),
        (b'{"method": "irscope/report", "params": {"run": ' + b"9" * 5000 + b"}}", 400),
        (b'{"method": "irscope/report", "params": {"run": NaN}}', 200),
        (b" " * 70_000, 413),
    ],
)
def test_what_is_malformed_is_answered_and_the_server_goes_on(browser: Browser, body: bytes, status: int) -> None:
    given, _, said = browser("POST", "/request", body)
    assert given == status
    assert status != 200 or "error" in json.loads(said)
    assert "result" in browser.ask("irscope/runs")


def test_broken_http_does_not_stop_it(browser: Browser) -> None:
    for data in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 70_000, b""):
        with socket.create_connection(("127.0.0.1", browser.port), 10) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            with pytest.MonkeyPatch.context():
                connection.settimeout(10)
                while connection.recv(65536):
                    pass
    assert "result" in browser.ask("irscope/runs")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /%ff%fe HTTP/1.1",
        b"GET /\xff\xfe HTTP/1.1",
        b"GET /static/\xed\xa0\x80.js HTTP/1.1",
        b"GET /static/%00 HTTP/1.1",
        b"GET /static/\0.js HTTP/1.1",
        b"GET /static/" + b"a" * 5000 + b" HTTP/1.1",
        b"GET //[x/ HTTP/1.1",
        b"GET http://[::1 HTTP/1.1",
        b"GET http://[x]y/ HTTP/1.1",
        b"GET /panel/graph?theme=%ED%A0%80&&&=;;% HTTP/1.1",
        b"GET /panel/graph?" + b"a&" * 5000 + b" HTTP/1.1",
        b"GET * HTTP/1.1",
        b"GET / HTTP/1.1\r\nCookie: \xff=\xfe",
        b"POST /request HTTP/1.1\r\nContent-Length: " + b"9" * 5000,
        b"POST /request HTTP/1.1\r\nContent-Length: -1",
        b"POST /request HTTP/1.1\r\nContent-Length: \xb2",
        b"POST /request HTTP/1.1\r\nContent-Length: 0\r\nContent-Type: \xff",
        b"POST //[x/ HTTP/1.1\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
        b"POST /open HTTP/1.1\r\nContent-Length: 2\r\nContent-Type: application/json\r\nAuthorization: Bearer \xff\r\n\r\n{}",
        b"POST /open HTTP/1.1\r\nContent-Length: 20\r\nContent-Type: application/json\r\nAuthorization: Bearer right-token\r\n\r\n"
        rb'{"run": "\ud800"}   ',
    ],
    ids=lambda head: repr(head)[:70],
)
def test_an_odd_request_is_answered(browser: Browser, head: bytes) -> None:
    line, _, rest = head.partition(b"\r\n")
    host = b"Host: 127.0.0.1:%d" % browser.port
    with socket.create_connection(("127.0.0.1", browser.port), 10) as connection:
        connection.sendall(b"\r\n".join([line, host, rest, b"", b""] if rest else [line, host, b"", b""]))
        assert connection.recv(12)[:9] == b"HTTP/1.1 "
    assert "result" in browser.ask("irscope/runs")


def test_a_lying_length_holds_up_nobody_else(browser: Browser) -> None:
    with socket.create_connection(("127.0.0.1", browser.port), 10) as connection:
        connection.sendall(
            f"POST /request HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\nContent-Length: 999\r\n\r\n{{".encode()
        )
        assert "result" in browser.ask("irscope/runs")


def test_many_ask_at_once(browser: Browser, run: str) -> None:
    def ask(number: int) -> bool:
        if number % 3 == 0:
            return bool(browser.ask("irscope/report", run=run)["result"]["compiles"])
        return bool(browser.ask("irscope/graph", run=run, stage="0/0/forward-graph")["result"])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(96)))


# --- what the user says about findings, and what is made on demand ------------------------------------------------------


def test_what_costs_every_call_comes_first(store_path: str, script: Path) -> None:
    with Store(store_path) as store:
        run = store.create_run(str(script), [], Lane.DEEP, "")
        store.put_compile(run, compile_of(str(script), seconds=2.0))
        store.put_finding(run, finding(str(script), 6, count=9))
        store.put_finding(run, finding(str(script), 3, kind="recompile-limit", code="GB0039"))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 2.0))
    reader = Reader(store_path)
    try:
        groups = json.loads(reader.answer("irscope/findings", {"run": run}))["groups"]
    finally:
        reader.close()
    assert [(one["code"], one["costsEveryCall"]) for one in groups] == [("GB0039", True), ("GB0059", False)]


def test_findings_are_shown_as_the_user_wants_them(
    store_path: str, run: str, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Options go before the settings of the folder, which VS Code would take; comments count in any case."""

    def group(wishes: Wishes) -> tuple[str, str]:
        reader = Reader(store_path, wishes=wishes)
        try:
            [found] = json.loads(reader.answer("irscope/findings", {"run": run}))["groups"]
        finally:
            reader.close()
        return found["severity"], found["places"][0]["hidden"]

    folder = str(tmp_path)
    assert group(wishes_of([], None, folder)) == ("warning", "")
    assert group(wishes_of([("GB0059", "error")], None, folder)) == ("error", "")
    assert group(wishes_of([("graph-break", "off")], None, folder)) == ("warning", "off")
    known = tmp_path / "known.json"
    known.write_text(json.dumps({"irscope-baseline": 1, "findings": {'GB0059 train.py print("hi")': 1}}))
    assert group(wishes_of([], str(known), folder)) == ("warning", "baseline")
    (tmp_path / ".vscode").mkdir()
    settings = tmp_path / ".vscode" / "settings.json"
    settings.write_text('{ // mine\n "irscope.severity": {"GB0059": "hint"}, "irscope.baseline": "known.json", }')
    assert group(wishes_of([], None, folder)) == ("hint", "baseline")
    assert group(wishes_of([("GB0059", "error")], None, folder)) == ("error", "baseline")
    settings.write_text('{"irscope.baseline": "none.json", "irscope.severity": {"GB0059": "loud"}}')
    assert group(wishes_of([], None, folder)) == ("warning", "")
    assert "loud" in (said := capsys.readouterr().err) and "none.json is not an irscope baseline" in said
    with pytest.raises(LookupError, match="is not an irscope baseline"):
        wishes_of([], str(script), folder)
    with Store(store_path) as store:
        store.put_source(run, str(script), SCRIPT.replace('print("hi")', 'print("hi")  # irscope: ignore'))
    assert group(Wishes()) == ("warning", "ignored")


def test_what_a_compiler_makes_of_a_kernel_is_made_when_it_is_opened(
    browser: Browser, server: web.ViewServer, store_path: str, run: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = StageRef("0/0/kernel/cpp_fused_0", "kernel", "cpp", 5)
    with Store(store_path) as store:
        store.put_stage(run, "0/0", kernel, "code;", 5.0)
    uri = f"irscope:/{run}/0/0/kernel/cpp_fused_0/assembly.s"
    [offered] = browser.ask("view/below", run=run, stage=kernel.id)["result"]["stages"]
    assert (offered["uri"], offered["made"]) == (uri, False)
    text = browser.ask("irscope/document", uri=uri)["result"]["text"]
    assert "only reads" in text and "irscope show" in text, "no interpreter was given to this one"
    asked = []

    def assembly_of(code: str, python: str, instructions: str) -> tuple[str, list[tuple[int, int]]]:
        asked.append((code, python, instructions))
        if len(asked) == 1:
            raise LoweringError("C++ compiler not found. Install g++.")
        return "ret", [(0, 1)]

    monkeypatch.setattr("irscope.lowering.cpp.assembly_of", assembly_of)
    monkeypatch.setattr(server.reader, "_python", "/usr/bin/python3")
    events = Events(browser)
    assert "C++ compiler not found" in browser.ask("irscope/document", uri=uri)["result"]["text"]
    assert browser.ask("irscope/document", uri=uri)["result"]["text"] == "ret", "it is tried again"
    assert browser.ask("irscope/document", uri=uri)["result"]["text"] == "ret"
    assert asked == [("code;", "/usr/bin/python3", "")] * 2, "it is made once"
    assert events.next() == {"type": "changed", "run": run, "running": False}
    events.close()
    [made] = browser.ask("view/below", run=run, stage=kernel.id)["result"]["stages"]
    assert made["made"] and made["bytes"] == 3


# --- what is new ------------------------------------------------------------------------------------------------------


class Events:
    def __init__(self, browser: Browser) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=30)
        self._connection.request("GET", "/events", headers={"Cookie": browser.session})
        self._answer = self._connection.getresponse()
        assert self._answer.headers["Content-Type"] == "text/event-stream"
        assert self._answer.readline() == b"retry: 1500\n"

    def next(self) -> Any:
        while not (line := self._answer.readline()).startswith(b"data: "):
            assert line, "the server closed"
        return json.loads(line[6:])

    def close(self) -> None:
        self._connection.close()


def test_pages_hear_of_a_run_while_it_goes_on(browser: Browser, store_path: str, script: Path, run: str) -> None:
    """Also of one that came before the server looked for the first time since the page listens."""
    with Store(store_path) as store:
        new = store.create_run(str(script), [], Lane.FAST, "digest")
        events = Events(browser)
        told = [events.next(), events.next()]  # the one that the store had is as new to the server
        assert {"type": "changed", "run": new, "running": True} in told
        assert {"type": "changed", "run": run, "running": False} in told
        store.put_finding(new, finding(str(script), 6))
        assert events.next() == {"type": "changed", "run": new, "running": True}
        store.set_outcome(new, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
        assert events.next() == {"type": "changed", "run": new, "running": False}
    events.close()


def test_another_command_shows_a_place_in_the_page_that_is_open(browser: Browser, server: web.ViewServer) -> None:
    subject = {"file": "/x/model.py", "line": "42"}
    assert server.address.ask(subject) == 0, "no page is open yet"
    events = Events(browser)
    assert server.address.ask(subject) == 1
    assert events.next() == {"type": "open", "subject": subject}
    events.close()
    for authorization in (None, "Bearer wrong", "Basic right-token", "right-token"):
        assert browser("POST", "/open", subject, Authorization=authorization)[0] == 401, "the cookie is not enough"


# --- the command ------------------------------------------------------------------------------------------------------


def start(*args: str, env: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """The command, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "irscope", "view", "--no-browser", *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
    )  # fmt: skip
    assert process.stdout is not None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    text = ""
    while "http://" not in text:
        line = process.stdout.readline()
        assert line, text
        text += line
    watchdog.cancel()
    match = re.search(r"http://\S+", text)
    assert match
    return process, match[0]


def test_the_command_serves_is_found_again_and_leaves_nothing_behind(
    store_path: str, run: str, script: Path, tmp_path: Path
) -> None:
    assert assets.folder() is not None, "the page is built by npm run build"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "IRSCOPE_STORE": ""}
    process, url = start("--store", store_path, run[:10], env=env)
    try:
        port, token, shown = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{32})&run=(\S+)", url).groups()  # type: ignore[union-attr]
        assert shown == run
        [note] = (tmp_path / "cache" / "irscope" / "view").iterdir()
        assert (note.stat().st_mode & 0o777, note.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        second, again = start("--store", store_path, "--open", f"{script}:6", env=env)
        assert second.wait(30) == 0
        assert again == f"http://127.0.0.1:{port}/#token={token}&file={script}&line=6"
        listening = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True).stdout if _has("ss") else ""
        assert f"0.0.0.0:{port}" not in listening and f"[::]:{port}" not in listening
    finally:
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(30) == 0, "it ended by itself (one that began without SIGINT, after `&`, never does)"
        finally:
            process.kill()
    assert list(note.parent.iterdir()) == []


def _has(program: str) -> bool:
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.get_exec_path())


def test_the_command_says_what_is_wrong(store_path: str, run: str, tmp_path: Path) -> None:
    assert assets.folder() is not None, "the page is built by npm run build"

    def said(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "irscope", "view", "--no-browser", *args], capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stderr

    assert said("--store", store_path, "2001")[0] == 2
    assert "No run is named 2001" in said("--store", store_path, "2001")[1]
    (tmp_path / "no.db").write_text("no database at all, and longer than the header of one" * 20)
    code, words = said("--store", str(tmp_path / "no.db"), run)
    assert code == 3 and "cannot be used" in words
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, words = said("--store", store_path, "--port", str(taken.getsockname()[1]))
        assert code == 3 and "name another" in words


def test_the_door_for_a_browser_is_of_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on a machine can read command lines, so a browser is not started with the token on its own."""
    monkeypatch.setenv("IRSCOPE_STORE", str(tmp_path / "runs.db"))
    here = address.Address(4321, "a-token", str(tmp_path / "runs.db"))
    uri = address.door(here, {"file": '/x/"><script>alert(1)</script>.py'})
    path = Path(uri.removeprefix("file://"))
    assert "a-token" not in uri and path.stat().st_mode & 0o777 == 0o600
    page = path.read_text()
    assert "a-token" in page and "<script>" not in page
    address.forget(here)
    assert not path.exists()
