"""The smallest client that conforms: the level Core. Translate it; LQ-AREA-n are rules of the specification."""

import contextlib
import re
import select
import socket
import threading
from dataclasses import dataclass

import scripts

REPLY_SECS = 60  # LQ-CLIENT-10: 2 minutes at most
CLOSE_SECS = 5


class ClientError(Exception):
    """The error of every call. `definite`: nothing has taken effect but for `answers` (LQ-ERROR-4)."""

    def __init__(self, message, *, code=None, definite, answers=()):
        super().__init__(message)
        self.code = code
        self.definite = definite
        self.answers = answers


class ReplyError(Exception):
    """An error that the server replied."""


class Connection:
    """One connection, which is opened when it is needed. It sends nothing twice (LQ-CLIENT-1)."""

    def __init__(self, host, port):
        self.address = (host, port)
        self._socket = None

    def command(self, *words):
        """Send a command and return its reply. Raises ReplyError, ClientError."""
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        data = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        try:
            if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
                self.close()  # LQ-FAIL-5: bytes before the command, or the end, are of a connection that is over
            if self._socket is None:
                self._socket = socket.create_connection(self.address, REPLY_SECS)
                self._replies = self._socket.makefile("rb")
        except OSError as error:
            raise ClientError(f"no connection: {error}", definite=True) from None
        try:
            self._socket.sendall(data)
            return self._read()
        except ReplyError as error:
            if str(error).startswith("READONLY"):
                self.close()  # LQ-CLIENT-25: the address may lead to another server by now
            raise
        except (OSError, ValueError) as error:
            self.close()
            raise ClientError(f"the connection was lost: {error}", definite=False) from None

    def close(self):
        """Close it. The next command opens another one."""
        if self._socket is not None:
            self._replies.close()
            self._socket.close()
            self._socket = None

    def _read(self):
        line = self._replies.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("no reply")
        kind, text = line[:1], line[1:-2]
        if kind == b":":
            return int(text)
        if kind == b"+":
            return text
        if kind == b"-":
            raise ReplyError(text.decode(errors="replace"))
        if kind == b"$":
            return None if text == b"-1" else self._read_bytes(int(text))
        if kind == b"*":
            return None if text == b"-1" else [self._read() for _ in range(int(text))]
        raise ValueError("bytes that are no reply")

    def _read_bytes(self, size):
        found = self._replies.read(size + 2)
        if not found.endswith(b"\r\n"):
            raise OSError("half a reply")
        return found[:size]


@dataclass
class Lease:
    """An item, and the right to work on it until the deadline (microseconds). `keep_ms` is above 0 if its outcome is kept."""

    id: bytes
    data: bytes
    token: int
    attempt: int
    deadline: int
    keep_ms: int = 0


class Queue:
    """A queue."""

    def __init__(self, connection, name, group=None):
        group = name if group is None else group
        for each in (name, group):
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", each):  # LQ-KEY-2
                raise ClientError("a name has 1 to 100 of A-Z, a-z, 0-9, _, . and -", definite=True)
        self._connection = connection
        self._publishing = []
        self._key = scripts.KEY.replace("<group>", group).replace("<name>", name)

    def add(self, items, options):
        """Add (id, data) pairs. Return when each was added, 0 if its id exists. Without room for all, raises an error with these."""
        words = _options(scripts.ADD, options)
        added = self._entries(scripts.ADD, [[item_id, data, *words] for item_id, data in items])
        if -1 in added:  # LQ-CLIENT-6
            raise ClientError("the queue is full", code="LEASEQ_FULL", definite=True, answers=added)
        return added

    def lease(self, duration_ms, count=1):
        """Lease up to `count` items, without waiting."""
        found, wait = 0, 0
        while not found and wait == 0:  # LQ-BLOCK-4
            wait, deadline, found, *rest = self._call(scripts.LEASE, [], [count, duration_ms])
            leases = [Lease(*rest[4 * n : 4 * n + 4], deadline) for n in range(found)]
            extras = rest[4 * found :]
            died = []
            for number, name, value in zip(extras[0::3], extras[1::3], extras[2::3], strict=True):
                if name == b"keep":
                    leases[number - 1].keep_ms = int(value)
                elif name == b"died":
                    died.append(value)
                # any other name is of a capability, or of a later version: skipped (LQ-READ-7)
            if died:
                self._publish(died)
        return leases

    def complete(self, leases, only_current=False):
        """Complete leases. Return of each whether this call did."""
        options = {"only_current": 1} if only_current else {}
        if not any(each.keep_ms for each in leases):
            words = _options(scripts.COMPLETE, options)
            done = self._entries(scripts.COMPLETE, [[each.id, each.token, *words] for each in leases])
        else:  # LQ-CLIENT-7, for the whole call
            entries = [
                [each.id, each.token, *_options(scripts.COMPLETE_WITH, options | _keep(each)), 0]
                for each in leases
            ]
            words = [word for entry in entries for word in entry]
            done = self._call(scripts.COMPLETE_WITH, _kept(leases), [len(leases), 0, *words])
            done = done if isinstance(done, list) else [done]
        return [each == 1 for each in done]

    def extend(self, leases, duration_ms):
        """Extend leases. Return the deadline of each, 0 if it is lost."""
        return self._entries(scripts.EXTEND, [[each.id, each.token, duration_ms] for each in leases])

    def release(self, leases, options):
        """Release leases. Return the state of each."""
        entries = [
            [each.id, each.token, *_options(scripts.RELEASE, options | _keep(each))] for each in leases
        ]
        return self._entries(scripts.RELEASE, entries, _kept(leases))

    def close(self):
        """Wait for what is done in the background. The connection stays open: other queues use it."""
        for thread in self._publishing:
            thread.join(CLOSE_SECS)

    def _publish(self, ids):
        """LQ-CLIENT-8: in the background, on another connection; errors do not matter."""

        def publish():
            connection = Connection(*self._connection.address)
            with contextlib.suppress(ClientError):
                keys = [b"result:" + item_id for item_id in ids]
                self._entries(scripts.OUTCOME, [[item_id] for item_id in ids], keys, connection)
            connection.close()

        self._publishing = [thread for thread in self._publishing if thread.is_alive()]
        self._publishing.append(threading.Thread(target=publish))
        self._publishing[-1].start()

    def _entries(self, script, entries, more_keys=(), connection=None):
        """A call of a script that takes entries. Return its replies, one for each."""
        words = [word for entry in entries for word in entry]
        reply = self._call(script, more_keys, [len(entries), *words], connection)
        return reply if isinstance(reply, list) else [reply]  # the reply for one entry is bare (3.3)

    def _call(self, script, more_keys, arguments, connection=None):
        connection = connection or self._connection
        before, after = self._key.encode().split(b"<key>")
        keys = [
            before + key + after for key in (*(each.encode() for each in script.keys), *more_keys)
        ]  # LQ-CALL-1
        try:
            try:
                return connection.command("EVALSHA", script.sha1, len(keys), *keys, *arguments)
            except ReplyError as error:
                if not str(error).startswith("NOSCRIPT"):
                    raise
                return connection.command("EVAL", script.source, len(keys), *keys, *arguments)  # LQ-SCRIPT-2
        except ReplyError as error:
            raise _error(str(error), connection) from None


def _error(text, connection):
    """The table of 3.5."""
    word = text.split(" ")[0]
    if word.startswith("LEASEQ_"):
        return ClientError(text, code=word, definite=True)
    if any(text.startswith(each) for each in scripts.STOPPED_INSIDE):
        return ClientError(text, definite=False)
    if word in scripts.NOT_RUN or any(text.startswith(each) for each in scripts.TURNED_AWAY):
        return ClientError(text, definite=True)
    if word == "ERR" and not _runs_scripts(connection):
        return ClientError("this server runs no Lua scripts", definite=True)
    return ClientError(text, definite=False)


def _runs_scripts(connection):
    """LQ-ERROR-6."""
    try:
        connection.command("EVAL", "return 1", 0)
    except ReplyError as error:
        return not str(error).startswith("ERR")
    except ClientError:
        pass
    return True


def _options(script, given):
    """Options in the order of the manifest, behind their number (LQ-CALL-10)."""
    pairs = [(name, given[name]) for name in script.options if name in given]
    return [len(pairs), *(word for pair in pairs for word in pair)]


def _keep(lease):
    return {"keep": 0} if lease.keep_ms else {}


def _kept(leases):
    return [b"result:" + each.id for each in leases if each.keep_ms]
