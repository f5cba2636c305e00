// chipset for opencode. Every hook here runs the same binary, which decides what the agent is told.
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const binary = {{json .Binary}}
// worker: a rig started this session, and continues it by itself.
const worker = {{.Worker}}
const steps = {
  start: "client-hook opencode session.start {{.Flag}}",
  prompt: "client-hook opencode chat.message {{.Flag}}",
  before: "client-hook opencode tool.execute.before {{.Flag}}",
  after: "client-hook opencode tool.execute.after {{.Flag}}",
  idle: "client-hook opencode session.idle {{.Flag}}",
  wait: "client-hook opencode wait {{.Flag}}",
  end: "client-hook opencode session.end {{.Flag}}",
}

export const Chipset = async ({ client, directory }) => {
  // What is known of each session: agent, the name as which it speaks, "" for that of the environment.
  const sessions = new Map()
  const roots = new Map()

  // rootOf returns the session that a session is part of: a subagent has one of its own.
  const rootOf = async (id) => {
    let root = roots.get(id)
    for (let at = id; !root; ) {
      const { data } = await client.session.get({ path: { id: at } })
      if (data?.parentID) at = data.parentID
      else root = at
    }
    roots.set(id, root)
    return root
  }

  const sessionOf = (id) => {
    if (!sessions.has(id)) sessions.set(id, { agent: "" })
    return sessions.get(id)
  }

  // ask resolves to the answer at a step, {} for none. The process ends when its standard input does.
  const ask = (step, input, { env = {}, started } = {}) =>
    new Promise((resolve) => {
      const child = spawn(binary, steps[step].trim().split(" "), {
        cwd: directory, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "ignore"],
      })
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (text) => (said += text))
      child.on("error", () => resolve({}))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said))
        } catch {
          resolve({})
        }
      })
      child.stdin.on("error", () => {})
      child.stdin.write(JSON.stringify(input) + "\n")
      if (started) started(child)
      else child.stdin.end()
    })

  const begin = async (id, s, source) => {
    const dir = await mkdtemp(join(tmpdir(), "chipset-"))
    try {
      const file = join(dir, "env")
      const answer = await ask("start", { session_id: id, source }, { env: { CHIPSET_ENV_FILE: file } })
      const text = await readFile(file, "utf8").catch(() => "")
      s.agent = /^export CHIPSET_AGENT=(\S+)$/m.exec(text)?.[1] ?? s.agent
      return answer
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  }

  // told returns what the agent is told at a step. What it begins with comes first, once, and again when it has forgotten it.
  const told = async (step, session, input) => {
    const id = await rootOf(session)
    const s = sessionOf(id)
    const source = s.forgot ? "compact" : "startup"
    const first = !s.begun || s.forgot
    s.begun = true
    s.forgot = false
    const answer = first ? await begin(id, s, source) : await ask(step, { session_id: id, ...input })
    return answer.hookSpecificOutput?.additionalContext ?? ""
  }

  // note tells the rig that started this session what opencode itself does not print: that it tries again, and that a tool runs.
  const note = (type, fields) => {
    if (worker) process.stdout.write(JSON.stringify({ type: "chipset." + type, ...fields }) + "\n")
  }

  const say = (id, text) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })

  const rested = (s) => {
    s.waiting?.stdin.end()
    s.waiting = undefined
  }

  // idle keeps the agent going while work is on its hook, else wakes it when there is news for it.
  const idle = async (id) => {
    if ((await rootOf(id)) !== id) return
    const s = sessionOf(id)
    const failed = s.failed
    s.failed = false
    let answer = failed ? {} : await ask("idle", { session_id: id })
    if (worker) return
    if (!answer.reason) {
      rested(s)
      answer = await ask("wait", { session_id: id }, { started: (child) => (s.waiting = child) })
    }
    if (answer.reason) await say(id, answer.reason)
  }

  return {
    config: async (config) => {
      if (worker) return
      config.mcp = { chipset: { type: "local", enabled: true, command: [binary, "mcp", "--crew", "opencode"] }, ...config.mcp }
    },
    "chat.message": async (input, output) => {
      rested(sessionOf(await rootOf(input.sessionID)))
      const text = await told("prompt", input.sessionID, {})
      const last = output.parts.at(-1)
      if (text && last) output.parts.push({ id: last.id + "z", messageID: last.messageID, sessionID: last.sessionID, type: "text", text, synthetic: true })
    },
    "tool.execute.before": async (input, output) => {
      const id = await rootOf(input.sessionID)
      if (id === input.sessionID) note("tool", { sessionID: id, part: { callID: input.callID, tool: input.tool } })
      const answer = await ask("before", { session_id: id, tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args })
      const refused = answer.hookSpecificOutput
      if (refused?.permissionDecision === "deny") throw new Error(refused.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const text = await told("after", input.sessionID, { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args })
      if (!text) return
      if (Array.isArray(output.content)) output.content.unshift({ type: "text", text }) // a tool of a server, of whose output the end may be cut
      else output.output += "\n\n" + text
    },
    "shell.env": async (input, output) => {
      if (worker || !input.sessionID) return
      const { agent } = sessionOf(await rootOf(input.sessionID))
      if (agent) output.env.CHIPSET_AGENT = agent
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.compacted") sessionOf(id).forgot = true
      if (event.type === "session.error" && id) sessionOf(id).failed = true
      if (event.type === "session.status" && (await rootOf(id)) === id) note("status", { sessionID: id, status: event.properties.status })
      if (event.type === "session.idle") await idle(id)
      if (event.type === "session.deleted" && sessions.has(id)) await ask("end", { session_id: id })
    },
    dispose: async () => {
      for (const s of sessions.values()) rested(s)
    },
  }
}
