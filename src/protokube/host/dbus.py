"""D-Bus calls with a deadline.

jeepney encodes and decodes the messages. Its own connection says Hello without a deadline, so the connection is made
here.
"""

from __future__ import annotations

import time
from itertools import count
from typing import Any, Self

from jeepney import (  # type: ignore[import-untyped]
    DBusAddress,
    HeaderFields,
    MessageType,
    Parser,
    Properties,
    message_bus,
    new_method_call,
)
from jeepney.bus import get_bus  # type: ignore[import-untyped]
from jeepney.io.blocking import prep_socket  # type: ignore[import-untyped]


class BusError(Exception):
    """The service replied with an error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name


class Bus:
    """A short-lived connection for a few calls, so that a restart of the bus cannot break it."""

    def __init__(self, address: str, deadline: float) -> None:
        """`address` as D-Bus writes them, or SYSTEM. Raises OSError, RuntimeError or ValueError."""
        self._deadline, self._parser, self._serials = deadline, Parser(), count(1)
        self._socket = prep_socket(get_bus(address), timeout=self._left())
        try:
            self._ask(message_bus.Hello())
        except BaseException:
            self._socket.close()
            raise

    def call(self, service: str, path: str, interface: str, method: str, signature: str = "", *arguments: Any) -> Any:
        """The first value of the reply, None if it has none. Raises BusError, or OSError."""
        address = DBusAddress(path, bus_name=service, interface=interface)
        return self._ask(new_method_call(address, method, signature or None, arguments))

    def read(self, service: str, path: str, interface: str, name: str) -> Any:
        """The value of a property. Raises BusError, or OSError."""
        return self._ask(Properties(DBusAddress(path, bus_name=service, interface=interface)).get(name))[1]

    def _ask(self, message: Any) -> Any:
        serial = next(self._serials)
        self._socket.settimeout(self._left())
        self._socket.sendall(message.serialise(serial=serial))
        while (reply := self._next()).header.fields.get(HeaderFields.reply_serial) != serial:
            continue  # a signal, such as NameAcquired
        if reply.header.message_type is MessageType.error:
            text = reply.body[0] if reply.body and isinstance(reply.body[0], str) else ""
            raise BusError(reply.header.fields.get(HeaderFields.error_name, "an error"), text)
        return reply.body[0] if reply.body else None

    def _next(self) -> Any:
        while (message := self._parser.get_next_message()) is None:
            self._socket.settimeout(self._left())
            data = self._socket.recv(4096)
            if not data:
                raise ConnectionResetError("the bus closed the connection")
            self._parser.add_data(data)
        return message

    def _left(self) -> float:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("no answer in time")
        return seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
