"""A mailbox of nanobot, as its description has it: send and poll with atomic renames.
Usage: mailbox.py ROOT send FROM TO, with the message on standard input, or ROOT poll AGENT."""
import json
import os
import sys
import time

root, verb, *rest = sys.argv[1:]


def send(sender, to):
    message = json.load(sys.stdin)
    message.setdefault("id", "msg_%d_%s" % (time.time(), sender))
    message.update({"from": sender, "to": to, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
    inbox = os.path.join(root, to, "inbox")
    os.makedirs(inbox, exist_ok=True)
    final = os.path.join(inbox, "%d_%s.msg.json" % (time.time_ns(), sender))
    with open(final + ".tmp", "w") as f:
        json.dump(message, f)
    os.rename(final + ".tmp", final)


def poll(agent):
    inbox, done = os.path.join(root, agent, "inbox"), os.path.join(root, agent, "processed")
    os.makedirs(done, exist_ok=True)
    got = []
    for name in sorted(os.listdir(inbox)) if os.path.isdir(inbox) else []:
        if not name.endswith(".msg.json"):
            continue
        with open(os.path.join(inbox, name)) as f:
            got.append(json.load(f))
        os.rename(os.path.join(inbox, name), os.path.join(done, name))
    print(json.dumps(got))


{"send": send, "poll": poll}[verb](*rest)
