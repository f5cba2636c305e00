// The board's script: keeps the page up to date, sends forms without leaving it, and
// makes it work by keyboard. The page is whole without it.
"use strict";
(() => {
  const base = document.documentElement.dataset.base;
  const raw = new WeakMap(); // the element as the server sent it
  const $ = (sel, root = document) => root.querySelector(sel);
  const $$ = (sel, root = document) => [...root.querySelectorAll(sel)];

  // ---- ages ----
  const age = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (d > 0) return d + "d " + (h % 24) + "h";
    if (h > 0) return h + "h " + (m % 60) + "m";
    if (m > 0) return m + "m";
    return s + "s";
  };
  const ages = (root = document) => {
    for (const t of $$("time", root)) {
      const at = new Date(t.dateTime);
      const since = age(Date.now() - at), text = "lasts" in t.dataset ? "for " + since : since + " ago";
      if (t.textContent !== text) t.textContent = text;
      if (!t.title) t.title = at.toLocaleString();
    }
  };

  // ---- what has changed is swapped; what the person is typing stays ----
  const remember = (el) => {
    raw.set(el, el.outerHTML);
    for (const row of $$("[data-list] > [id]", el)) raw.set(row, row.outerHTML);
  };
  const busy = (el) => {
    const f = document.activeElement;
    if (f && el.contains(f) && f.matches("textarea, input, select")) return true;
    return $$("textarea, select", el).some((t) => t.tagName === "TEXTAREA" && t.value !== t.defaultValue) || !!$("details.act[open]", el);
  };
  const focusKey = (el) => {
    const f = document.activeElement;
    if (!f || !el.contains(f)) return null;
    const owner = f.closest("[id]");
    return { id: owner && owner.id, link: f.getAttribute && f.getAttribute("href"), key: f.dataset && f.dataset.key };
  };
  const refocus = (k) => {
    if (!k || !k.id) return;
    const owner = document.getElementById(k.id);
    if (!owner) return;
    const inner = k.link ? $$("a", owner).find((a) => a.getAttribute("href") === k.link) : k.key ? $(`[data-key="${CSS.escape(k.key)}"]`, owner) : null;
    (inner || owner).focus({ preventScroll: true });
  };
  const swapList = (old, neu) => {
    const have = new Map([...old.children].map((c) => [c.id, c]));
    const want = [...neu.children];
    want.forEach((row, i) => {
      const html = row.outerHTML, was = have.get(row.id);
      have.delete(row.id);
      let now = was;
      if (!was || (raw.get(was) !== html && !busy(was))) {
        now = document.adoptNode(row);
        raw.set(now, html);
        ages(now);
        const k = was && focusKey(was);
        if (was) was.replaceWith(now);
        else now.classList.add("fresh");
        if (k) { old.insertBefore(now, now.nextSibling); refocus(k); }
      }
      if (was) was.classList.remove("gone");
      if (old.children[i] !== now) {
        const k = focusKey(now);
        old.insertBefore(now, old.children[i] || null);
        refocus(k);
      }
    });
    for (const gone of have.values()) {
      if (busy(gone)) gone.classList.add("gone");
      else gone.remove();
    }
  };
  const swap = (old, neu) => {
    const html = neu.outerHTML;
    if (raw.get(old) === html) return;
    const list = $("[data-list]", neu);
    if (list && list.id && $("#" + CSS.escape(list.id), old)) {
      for (const part of $$("[id]", neu)) {
        if (list.contains(part) || part.contains(list)) continue;
        const was = $("#" + CSS.escape(part.id), old);
        if (was && was.innerHTML !== part.innerHTML && !busy(was)) { was.innerHTML = part.innerHTML; ages(was); }
        else if (!was) old.append(document.adoptNode(part));
      }
      old.className = neu.className;
      swapList($("#" + CSS.escape(list.id), old), list);
      raw.set(old, html);
      return;
    }
    if (busy(old)) return; // the next change tries again
    const lines = $("pre.lines", old), atEnd = lines && lines.scrollHeight - lines.scrollTop - lines.clientHeight < 30, top = lines && lines.scrollTop;
    const k = focusKey(old);
    const now = document.adoptNode(neu);
    raw.set(now, html);
    old.replaceWith(now);
    ages(now);
    refocus(k);
    const pre = $("pre.lines", now);
    if (pre && lines) pre.scrollTop = atEnd && now.classList.contains("follows") ? pre.scrollHeight : top;
  };

  // The least time between two refreshes, in milliseconds: more where a page costs more.
  const pace = Number($("#main").dataset.pace);
  let wanted = new Set(), fetching = false, last = 0;
  const connection = $("#connection");
  const trouble = (text) => {
    if (connection.textContent !== text) connection.textContent = text;
    connection.hidden = !text;
  };
  const restarted = "The board was restarted, or another one runs here now. Open the address that it has printed.";
  const refresh = async () => {
    if (fetching || wanted.size === 0 || document.hidden) return;
    const parts = wanted;
    wanted = new Set();
    const old = $$("[data-live]").filter((el) => el.dataset.live.split(" ").some((p) => parts.has(p)));
    if (old.length === 0) return;
    fetching = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.status === 401) return trouble(restarted);
      if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const el of old) {
        const neu = page.getElementById(el.id);
        if (neu) swap(el, neu);
      }
      if (document.title !== page.title) document.title = page.title;
      trouble("");
    } catch (e) {
      for (const p of parts) wanted.add(p);
      trouble("No connection to the board: what you see may be old.");
    } finally {
      fetching = false;
      last = Date.now();
      if (wanted.size > 0) setTimeout(refresh, pace);
    }
  };
  const changed = (parts) => {
    for (const p of parts) wanted.add(p);
    document.dispatchEvent(new CustomEvent("parts", { detail: parts }));
    const pause = pace - (Date.now() - last);
    if (pause <= 0) refresh();
    else setTimeout(refresh, pause);
  };

  // ---- the connection: closed while nobody looks at the page ----
  let source = null;
  const connect = () => {
    if (source || document.hidden) return;
    source = new EventSource(base + "/live");
    source.addEventListener("parts", (e) => changed(e.data.split(" ")));
    source.onopen = () => { trouble(""); document.documentElement.dataset.connected = "yes"; };
    source.onerror = async () => {
      delete document.documentElement.dataset.connected;
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        try {
          const answer = await fetch(location.href, { method: "HEAD", cache: "no-store" });
          trouble(answer.status === 401 ? restarted : "No connection to the board: what you see may be old.");
        } catch { trouble("No connection to the board: what you see may be old."); }
        setTimeout(connect, 2000);
        return;
      }
      trouble("No connection to the board: what you see may be old.");
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return connect();
    if (source) source.close();
    source = null;
  });

  // ---- forms ----
  let clearing = 0;
  const toast = (text, failed) => {
    const t = $("#toast");
    t.textContent = text;
    t.className = failed ? "failed" : "";
    clearTimeout(clearing);
    clearing = setTimeout(() => { t.textContent = ""; }, failed ? 12000 : 5000);
  };
  document.addEventListener("submit", async (e) => {
    const form = e.target;
    if (form.method !== "post") return;
    e.preventDefault();
    const button = $("button", form);
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "text/plain" } });
      toast(answer.status === 401 ? restarted : await answer.text(), !answer.ok);
      if (answer.ok) {
        const row = form.closest("[data-row]");
        form.reset();
        const details = form.closest("details");
        if (details) details.open = false;
        if (row && row.tabIndex >= 0) row.focus({ preventScroll: true });
        changed(["needs", "agents", "work", "queue", "convoys", "mail", "story"]);
      }
    } catch (err) {
      toast("Not sent: no connection to the board.", true);
    } finally {
      button.removeAttribute("aria-disabled");
    }
  });
  document.addEventListener("toggle", (e) => {
    if (e.target.matches && e.target.matches("details.act[open]")) {
      const field = $("textarea, select, button", e.target);
      if (field) field.focus();
    }
  }, true);

  // ---- keys ----
  const rows = () => $$("[data-row]").filter((r) => r.tabIndex >= 0 && r.offsetParent !== null);
  const row = () => document.activeElement && document.activeElement.closest("[data-row]");
  const move = (by) => {
    const all = rows();
    if (all.length === 0) return;
    const at = all.indexOf(row());
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const keysDialog = $("#keys");
  $("#show-keys").addEventListener("click", () => keysDialog.showModal());
  const pages = { b: "/", w: "/work", h: "/graph", m: "/mail", f: "/figures" };
  let going = false;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || keysDialog.open) return;
    const field = e.target.matches("textarea, input, select");
    if (e.key === "Escape") {
      const open = e.target.closest("details.act[open]");
      if (open) { open.open = false; $("summary", open).focus(); }
      else if (field) e.target.blur();
      return;
    }
    if (field) return;
    if (going) {
      going = false;
      if (pages[e.key]) { location.href = base + pages[e.key]; e.preventDefault(); }
      return;
    }
    switch (e.key) {
      case "j": case "ArrowDown": if (e.key === "j" || row()) { move(1); e.preventDefault(); } return;
      case "k": case "ArrowUp": if (e.key === "k" || row()) { move(-1); e.preventDefault(); } return;
      case "g": going = true; setTimeout(() => { going = false; }, 1500); return;
      case "?": keysDialog.showModal(); e.preventDefault(); return;
      case "/": { const s = $("#search"); if (s) s.focus(); else location.href = base + "/work"; e.preventDefault(); return; }
      case "Enter": if (e.target.matches("[data-row]")) { const a = $("a[data-open]", e.target); if (a) a.click(); } return;
    }
    if (e.key.length === 1 && actByKey(e.key)) e.preventDefault();
  });
  const actByKey = (key) => {
    const here = row() || $("main [data-row]:not([tabindex])");
    const what = here && $(`[data-key="${CSS.escape(key)}"]`, here);
    if (!what) return false;
    if (what.tagName === "DETAILS") what.open = true;
    else what.click();
    return true;
  };

  for (const el of $$("[data-live]")) remember(el);
  ages();
  setInterval(() => { if (!document.hidden) ages(); }, 1000);
  for (const pre of $$(".follows pre.lines")) pre.scrollTop = pre.scrollHeight;
  connect();
})();
