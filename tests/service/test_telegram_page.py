"""The bot of docs/telegram-bot.md, run against a scripted Bot API."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import memlog
from tests.support.places import ROOT

DATE = 1_772_000_000
ANNA = {"id": 7, "first_name": "Anna", "last_name": "Virtanen"}
MESSAGES = [
    {"chat": {"id": 7}, "from": ANNA, "text": "I drink green tea"},
    {"chat": {"id": -1001}, "from": ANNA, "text": "Shall we meet at the harbour?"},
    {"chat": {"id": -1001}, "from": {"id": 8, "first_name": "Bo"}, "text": "At nine"},
    {"chat": {"id": -1002}, "sender_chat": {"id": -1002, "title": "Ferries"}, "text": "The ferry is late"},
    {"chat": {"id": 7}, "from": ANNA, "photo": []},
]


@contextmanager
def bot_api(updates: list[dict[str, Any]]) -> Iterator[tuple[str, Event]]:
    """A Bot API that gives each update twice, and the event that it has been asked for more."""
    batches, numbers = [updates, updates, []], iter(range(100, 200))
    done, ended = Event(), Event()

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/botT/getUpdates":
                result: Any = batches.pop(0)
                if not batches:
                    done.set()
                    ended.wait(60)
                    return
            else:
                sender = {"first_name": "Bot"}
                chat = {"id": given["chat_id"]}
                result = {"message_id": next(numbers), "chat": chat, "from": sender, "date": DATE}
                result["text"] = given["text"]
            body = json.dumps({"ok": True, "result": result}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", done
        finally:
            ended.set()
            server.shutdown()


def test_the_bot_of_the_page_remembers_each_chat_with_its_names(tmp_path: Path) -> None:
    page = (ROOT / "docs/telegram-bot.md").read_text()
    (code,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    updates = [
        {"update_id": number, key: message | {"message_id": number, "date": DATE}}
        for number, message in enumerate(MESSAGES, 1)
        for key in ["channel_post" if "sender_chat" in message else "message"]
    ]
    with bot_api(updates) as (url, done):
        program = code.replace("https://api.telegram.org", url)
        environment = os.environ | {"TELEGRAM_TOKEN": "T"}
        bot = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environment)
        try:
            assert done.wait(60)
        finally:
            bot.kill()
            bot.wait()
    with memlog.open(tmp_path / "bot") as store:
        windows = {
            chat: [
                each.name
                for each in store.conversations.window(f"telegram:{chat}", last=9).messages
                if each.role == "user"
            ]
            for chat in ("7", "-1001", "-1002")
        }
        (hit,) = store.search("green tea", chat="telegram:7", k=1).hits
    assert windows == {"7": ["Anna Virtanen"], "-1001": ["Anna Virtanen", "Bo"], "-1002": ["Ferries"]}
    assert hit.content == "I drink green tea"
