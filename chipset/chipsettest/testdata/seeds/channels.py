"""Another program that shares the tree of a rig: mail, nudges and hooks as the
description of the Gastown chipset has them, with none of the fields that this
project adds. Usage: channels.py STATE VERB ARGUMENT..."""
import datetime
import json
import os
import sys

state = sys.argv[1]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def put(temp, final, value):
    """Writes, syncs and renames."""
    os.makedirs(os.path.dirname(final), exist_ok=True)
    with open(temp, "w") as f:
        f.write(json.dumps(value, indent=2, sort_keys=True))
        f.flush()
        os.fsync(f.fileno())
    os.rename(temp, final)


def box(agent):
    return os.path.join(state, "mail", agent)


def messages(agent):
    """All mail of a box, by file name."""
    try:
        names = sorted(n for n in os.listdir(box(agent)) if n.endswith(".json"))
    except FileNotFoundError:
        names = []
    for name in names:
        with open(os.path.join(box(agent), name)) as f:
            yield name, json.load(f)


def send(to, sender, kind, subject, body):
    at = now()
    final = os.path.join(box(to), at.replace(":", "-") + "-" + sender + ".json")
    put(os.path.join(box(to), ".msg.tmp"), final, {"from": sender, "to": to, "type": kind, "subject": subject,
        "body": body, "timestamp": at, "read": False, "priority": "normal"})


def unread(agent):
    print(json.dumps([m for _, m in messages(agent) if not m["read"]]))


def read(agent):
    """Marks all mail as read and moves it to the archive."""
    for name, m in messages(agent):
        file = os.path.join(box(agent), name)
        m["read"] = True
        put(file + ".tmp", file, m)
        os.makedirs(os.path.join(box(agent), "archive"), exist_ok=True)
        os.rename(file, os.path.join(box(agent), "archive", name))


def nudge(to, sender, kind):
    file = os.path.join(state, "nudge", to, "latest.json")
    put(file + ".tmp", file, {"from": sender, "type": kind, "message": "are you there?", "timestamp": now(),
        "requires_response": True})


def latest(agent):
    with open(os.path.join(state, "nudge", agent, "latest.json")) as f:
        print(f.read())


def hang(agent, bead, title):
    file = os.path.join(state, "hooks", agent + ".json")
    put(file + ".tmp", file, {"agent_id": agent, "status": "pending", "last_activity": now(),
        "work_item": {"bead_id": bead, "title": title}})


def hook(agent):
    with open(os.path.join(state, "hooks", agent + ".json")) as f:
        print(f.read())


def begin(*files):
    """Leaves files as they are in the middle of a write."""
    for file in files:
        file = os.path.join(state, file)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as f:
            f.write('{"from": "polec')


{f.__name__: f for f in (send, unread, read, nudge, latest, hang, hook, begin)}[sys.argv[2]](*sys.argv[3:])
