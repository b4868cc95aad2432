"""The adapter of client.py (ADAPTER.md). It owns no sleep, no retry, no check and no default."""

import base64
import json
import sys
from urllib.parse import urlsplit

import scripts
from client import ClientError, Connection, Queue


def unb64(value):
    return (
        value["$text"].encode("utf-8", "surrogatepass")
        if "$text" in value
        else base64.b64decode(value["$b64"])
    )


def b64(value):
    return {"$b64": base64.b64encode(value).decode()}


class UnsupportedError(Exception):
    """The client does not do this."""


class Adapter:
    """The client behind the adapter protocol: a method for each `op`, and one for each method of a call."""

    def __init__(self):
        self._connection = None
        self._queues = {}
        self._leases = {}

    def answer(self, request):
        try:
            return {"id": request["id"], "ok": getattr(self, request["op"])(request)}
        except ClientError as error:
            added = ["full" if when < 0 else "added" if when else "exists" for when in error.answers]
            found = {"code": error.code, "definite": error.definite, "message": str(error), "answers": added}
            entries = len(request.get("args", {}).get("items", [0]))
            return {"id": request["id"], "error": found | {"in_doubt": 0 if error.definite else entries}}
        except UnsupportedError as error:
            return {"id": request["id"], "unsupported": str(error)}

    def hello(self, request):
        server = urlsplit(request["url"])
        self._connection = Connection(server.hostname, server.port)
        client = {"name": "port", "version": "0", "language": "Python"}
        digests = {script.name: script.sha1 for script in scripts.ALL}
        return {"protocol": 3, "client": client, "capabilities": ["core"], "scripts": digests}

    def open(self, request):
        self._queues[request["queue"]] = Queue(self._connection, request["name"], request["group"])
        return {}

    def close(self, request):
        self._queues.pop(request["queue"]).close()
        return {}

    def close_client(self, _request):
        for queue in self._queues.values():
            queue.close()
        self._queues.clear()
        self._connection.close()
        return {}

    def cancel(self, _request):
        return {}  # no call waits

    def call(self, request):
        method = getattr(self, f"call_{request['method']}", None)
        if method is None:
            raise UnsupportedError(request["method"])
        return method(request["queue"], self._queues.get(request["queue"]), request["args"])

    def call_add(self, _name, queue, args):
        options = {name.removesuffix("_ms"): value for name, value in args.get("options", {}).items()}
        items = [(unb64(item["id"]), unb64(item["data"])) for item in args["items"]]
        return ["added" if when else "exists" for when in queue.add(items, options)]

    def call_lease(self, name, queue, args):
        leases = queue.lease(args["duration_ms"], args.get("count", 1))
        self._leases |= {(each.id, str(each.token)): each for each in leases}
        found = [
            {
                "id": b64(each.id),
                "data": b64(each.data),
                "token": str(each.token),
                "attempt": each.attempt,
                "deadline": str(each.deadline),
                "keep_ms": each.keep_ms,
                "content_type": None,
                "headers": {},
            }
            for each in leases
        ]
        return {"queue": name if found else None, "leases": found}

    def call_complete(self, _name, queue, args):
        return queue.complete(self._held(args), args.get("only_current", False))

    def call_extend(self, _name, queue, args):
        deadlines = queue.extend(self._held(args), args["duration_ms"])
        return [str(deadline) if deadline else None for deadline in deadlines]

    def call_release(self, _name, queue, args):
        options = {"delay": args["delay_ms"]} if "delay_ms" in args else {}
        options |= {"uncounted": 1} if args.get("uncounted") else {}
        return [state.decode() for state in queue.release(self._held(args), options)]

    def _held(self, args):
        return [self._leases[unb64(held["id"]), held["token"]] for held in args["items"]]


adapter = Adapter()
for line in sys.stdin:
    print(json.dumps(adapter.answer(json.loads(line))), flush=True)
