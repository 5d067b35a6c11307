"""A notification server that writes down what it is asked: `python notifyd.py FOLDER`.

Each call is a line of JSON in `calls`, with the number that was given. While `hold` is there, nobody gets a number. It
ends when `end` is there, as servers do that nobody has asked anything for a while.
"""

import json
import sys
from pathlib import Path

from jeepney import HeaderFields, MessageType, message_bus, new_method_return
from jeepney.io.blocking import open_dbus_connection

folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)


def write_down(member, values, number):
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps([member, [each for each in values if isinstance(each, str | int)], number]) + "\n")


with open_dbus_connection("SESSION") as connection:
    # Whoever waits for the answer drops the call that it was started for.
    connection.send(message_bus.RequestName("org.freedesktop.Notifications"))
    last, held = 0, []
    while not (folder / "end").exists():
        if not (folder / "hold").exists():
            while held:
                connection.send(held.pop(0))
        try:
            asked = connection.receive(timeout=0.02)
        except TimeoutError:
            continue
        except ConnectionError:
            break
        if asked.header.message_type is not MessageType.method_call:
            continue
        match asked.header.fields[HeaderFields.member]:
            case "GetCapabilities":
                connection.send(new_method_return(asked, "as", (["actions", "body"],)))
            case "Notify":
                last += 1
                number = asked.body[1] or last
                write_down("Notify", asked.body, number)
                held.append(new_method_return(asked, "u", (number,)))
            case "CloseNotification":
                write_down("CloseNotification", asked.body, asked.body[0])
                connection.send(new_method_return(asked))
