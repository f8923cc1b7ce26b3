// The dashboard's one script. The server renders every part of a page; this fetches the parts with the key of the tab, puts them
// in place without disturbing what the reader does, and asks for confirmation before anything is changed.
// All text goes through textContent or through fragments that the server escaped; nothing here builds HTML.
(() => {
  "use strict";

  const KEY = "thrifty-key";
  const THEME = "thrifty-theme";
  const THEMES = ["system", "light", "dark"];
  const TICK_MS = 250;
  const TRAILING_MS = 1100; // a slow part may come from the server's memory of the last second, so it is fetched once more
  const POLL_MS = 2000;
  const RETRY_MS = 3000;

  // -- colours, before anything is drawn ---------------------------------------------------------------------------------------

  let theme = localStorage.getItem(THEME) || "system";
  const paint = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  };
  const nextTheme = () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem(THEME, theme);
    paint();
  };
  paint();

  // -- where we are --------------------------------------------------------------------------------------------------------------

  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // typed by hand; the service says that there is no such thing
    }
  };
  const place = (() => {
    const [, router, segment] = location.pathname.match(/^\/routers\/([^/]+)(?:\/segments\/(.*))?$/) || [];
    if (router === undefined) return { fragments: location.pathname === "/keys" ? "/dashboard/keys" : "/dashboard/overview" };
    const found = { router: decoded(router), fragments: `/dashboard/routers/${router}` };
    if (segment !== undefined) found.segment = new URLSearchParams(location.search).get("segment") ?? decoded(segment);
    return found;
  })();
  const api = (path) => `/v1/routers/${encodeURIComponent(place.router)}${path}`;
  const $ = (id) => document.getElementById(id);

  // -- asking the service --------------------------------------------------------------------------------------------------------

  class Refusal extends Error {
    constructor(status, message, wait) {
      super(message);
      this.status = status;
      this.wait = wait;
    }
  }

  const send = (path, { method = "GET", body, signal } = {}) => {
    const headers = {};
    const key = sessionStorage.getItem(KEY);
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return fetch(path, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
  };

  const ask = async (path, options) => {
    const used = sessionStorage.getItem(KEY);
    const answer = await send(path, options);
    if (answer.ok) return answer;
    let message = `The service answered ${answer.status}.`;
    try {
      message = (await answer.json()).error.message;
    } catch { /* an answer without a message */ }
    if (answer.status === 401) askForKey(used, message);
    throw new Refusal(answer.status, message, Number(answer.headers.get("retry-after")) || 1);
  };
  const askJson = async (path, options) => (await ask(path, options)).json();

  // -- the key -------------------------------------------------------------------------------------------------------------------

  let waitingForKey = false;
  const askForKey = (used, message) => {
    if (waitingForKey || (used || null) !== sessionStorage.getItem(KEY)) return;
    waitingForKey = true;
    sessionStorage.removeItem(KEY);
    for (const part of parts()) part.replaceChildren();
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    $("key-error").textContent = used ? (/expired/.test(message) ? message : "This key is not valid, or no longer.") : "";
    $("leave").hidden = true;
    $("key-dialog").showModal();
  };

  const useKey = (event) => {
    event.preventDefault();
    const key = $("key-input").value.trim();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      $("key-error").textContent = "A key has no spaces and only plain letters, digits and signs.";
      return;
    }
    sessionStorage.setItem(KEY, key);
    $("key-input").value = "";
    waitingForKey = false;
    $("key-dialog").close();
    begin();
  };

  const leave = () => {
    sessionStorage.removeItem(KEY);
    location.reload();
  };

  // -- parts of the page -----------------------------------------------------------------------------------------------------------

  const parts = () => [...document.querySelectorAll("[data-part]")];
  const states = new Map(); // of each part: its parameters, when it was fetched, and whether it is being fetched
  const narrow = matchMedia("(max-width: 700px)");
  let changedAt = 0; // when something changed on the server, by the clock of this page
  let moment = ""; // the digest of the last event

  const stateOf = (part) => {
    const name = part.dataset.part;
    if (!states.has(name)) states.set(name, { parameters: {}, fetchedAt: -Infinity, busy: false, waitUntil: 0 });
    return states.get(name);
  };

  const parametersOf = (state) => ({ size: narrow.matches ? "narrow" : "wide", ...state.parameters });

  // Fetch parts that have the same parameters, in one request.
  const fetchParts = async (group) => {
    const asked = parametersOf(stateOf(group[0]));
    const query = new URLSearchParams({ part: group.map((part) => part.dataset.part).join(","), ...asked });
    if (place.segment !== undefined) query.set("segment", place.segment);
    if (isQuick(group[0])) query.set("moment", moment);
    for (const part of group) Object.assign(stateOf(part), { busy: true, fetchedAt: performance.now() });
    const isOutdated = (part) => JSON.stringify(asked) !== JSON.stringify(parametersOf(stateOf(part)));
    try {
      const text = await (await ask(`${place.fragments}?${query}`)).text();
      const body = new DOMParser().parseFromString(text, "text/html").body;
      for (const part of group) {
        const fresh = group.length > 1 ? body.querySelector(`[data-answer="${CSS.escape(part.dataset.part)}"]`) : body;
        if (!isOutdated(part)) put(part, fresh);
      }
    } catch (error) {
      if (error.status !== 401) for (const part of group) fail(part, error);
    } finally {
      for (const part of group) {
        stateOf(part).busy = false;
        if (isOutdated(part)) fetchParts([part]);
      }
    }
  };
  const isQuick = (part) => Number(part.dataset.every) <= 1;

  const fetchAll = (due) => {
    const together = due.filter((part) => isQuick(part) && !Object.keys(stateOf(part).parameters).length);
    if (together.length) fetchParts(together);
    for (const part of due) if (!together.includes(part)) fetchParts([part]);
  };

  const put = (part, fresh) => {
    const focused = document.activeElement;
    if (focused.id === "alpha-slider" && part.contains(focused)) return; // somebody drags it
    morph(part, fresh);
    if (focused !== document.activeElement && part.contains(focused)) focused.focus({ preventScroll: true });
    part.classList.remove("waiting", "stale");
    part.dispatchEvent(new CustomEvent("filled", { bubbles: true }));
  };

  const fail = (part, error) => {
    stateOf(part).waitUntil = performance.now() + (error.wait ? 1000 * error.wait : RETRY_MS);
    const passing = !error.status || error.status === 429 || error.status === 503;
    if (!passing || (error.status === 503 && !part.childElementCount)) showProblem(part, error.message);
    else part.classList.add("stale");
    if (!error.status) say("offline", "off");
  };

  const showProblem = (part, message) => {
    part.classList.remove("waiting");
    const text = document.createElement("p");
    text.className = "alert warn";
    text.textContent = message;
    part.replaceChildren(text);
  };

  const refresh = () => {
    changedAt = performance.now(); // a part that is being fetched now is fetched once more
    for (const part of parts()) stateOf(part).waitUntil = 0;
    fetchAll(parts().filter((part) => !stateOf(part).busy));
  };

  const setParameters = (name, parameters) => {
    const part = document.querySelector(`[data-part="${CSS.escape(name)}"]`);
    Object.assign(stateOf(part).parameters, parameters);
    if (!stateOf(part).busy) fetchParts([part]);
  };

  const tick = () => {
    if (waitingForKey || document.hidden) return;
    const now = performance.now();
    const isDue = (part) => {
      const state = stateOf(part);
      const every = 1000 * Number(part.dataset.every) - 300; // events come about once a second
      if (state.busy || now < state.waitUntil || now - state.fetchedAt < every) return false;
      const trailing = isQuick(part) ? 0 : Math.max(TRAILING_MS, every);
      return state.fetchedAt < changedAt + trailing || part.classList.contains("stale");
    };
    fetchAll(parts().filter(isDue));
  };

  // Make `old` look like `fresh` and keep what is the same: focus, selection, scroll positions and open menus survive.
  const morph = (old, fresh) => {
    const wantedNodes = [...fresh.childNodes];
    const keyOf = (node) => (node.dataset ? node.dataset.key : undefined);
    const wantedKeys = new Set(wantedNodes.map(keyOf));
    const keyed = new Map();
    for (const node of [...old.childNodes]) {
      const key = keyOf(node);
      if (key === undefined) continue;
      if (wantedKeys.has(key)) keyed.set(key, node);
      else node.remove();
    }
    let cursor = old.firstChild;
    for (const wanted of wantedNodes) {
      const key = keyOf(wanted);
      const known = key === undefined ? cursor : keyed.get(key);
      const same = known && keyOf(known) === key && known.nodeName === wanted.nodeName && known.id === wanted.id;
      if (same && known === cursor) {
        cursor = cursor.nextSibling;
      } else if (same) {
        old.insertBefore(known, cursor);
      } else if (key === undefined && cursor && keyOf(cursor) === undefined) {
        const gone = cursor;
        cursor = cursor.nextSibling;
        gone.replaceWith(wanted);
        continue;
      } else {
        old.insertBefore(wanted, cursor);
        continue;
      }
      morphNode(known, wanted);
    }
    while (cursor) {
      const gone = cursor;
      cursor = cursor.nextSibling;
      gone.remove();
    }
  };
  const morphNode = (old, wanted) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
      return;
    }
    if (old.dataset.keep || old.isEqualNode(wanted)) return;
    for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of [...wanted.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    morph(old, wanted);
  };

  // -- live ----------------------------------------------------------------------------------------------------------------------

  let stream = null;
  // All who follow the same router get the same event. Its digest goes with the request, so that nobody gets a part from before it,
  // and all of them get the one that was made for the first who asked.
  const digest = (text) => {
    let hash = 0x811c9dc5;
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    return (hash >>> 0).toString(36);
  };
  const say = (text, style) => {
    const live = $("live");
    if (live.textContent !== text) live.textContent = text;
    live.className = `live ${style}`;
  };

  // Server-sent events by fetch, because EventSource cannot send a key. An event only says that something changed.
  const follow = async () => {
    if (stream || document.hidden || waitingForKey) return;
    stream = new AbortController();
    try {
      const path = place.router === undefined ? "/v1/events" : `/v1/events?router=${encodeURIComponent(place.router)}`;
      const answer = await ask(path, { signal: stream.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      say("live", "on");
      changedAt = performance.now();
      let pending = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const blocks = (pending + value).split("\n\n");
        pending = blocks.pop().slice(-100_000);
        const events = blocks.filter((block) => /^event:/m.test(block));
        if (!events.length) continue;
        moment = digest(events.at(-1));
        changedAt = performance.now();
        tick();
      }
    } catch (error) {
      if (error.status === 401) return;
      if (error.status) say("every 2 s", "on");
    } finally {
      stream = null;
    }
    if (!document.hidden) setTimeout(follow, RETRY_MS);
  };
  const poll = () => {
    if (document.hidden || waitingForKey || $("live").textContent === "live" && stream) return;
    changedAt = performance.now();
  };
  const onVisibility = () => {
    if (document.hidden && stream) stream.abort();
    if (!document.hidden) {
      changedAt = performance.now();
      follow();
    }
  };

  const begin = () => {
    $("leave").hidden = !sessionStorage.getItem(KEY);
    for (const part of parts()) if (!part.childElementCount) part.classList.add("waiting");
    refresh();
    follow();
  };

  // -- levers ----------------------------------------------------------------------------------------------------------------------

  const LEVERS = {
    pause: { text: "Pause", about: "It gets no more traffic until it is resumed. Its statistics stay." },
    resume: { text: "Resume", about: "It may be chosen again." },
    price: { text: "Change price", about: "From now on this price counts.", field: "price" },
    pin: { text: "Pin", about: "Every decision takes this arm, whatever is known, until it is unpinned." },
    unpin: { text: "Unpin", about: "The policy decides again." },
    reset: { text: "Reset statistics", about: "Forget what was learnt about this arm and learn it anew." },
    retire: { text: "Retire", about: "Take the arm out of this router. It can be added again." },
    add: { text: "Add an arm", about: "A newcomer gets a small share of traffic until it is known.", field: "add" },
    alpha: { text: "Change alpha", about: "The share of the best success rate that you are willing to give up.", field: "alpha" },
  };
  const DONE = { pause: "Paused", resume: "Resumed", price: "Changed the price of", pin: "Pinned", unpin: "Unpinned", reset: "Reset", retire: "Retired", add: "Added" };

  let lever = null; // what the dialog is about: the button's data, the action chosen, the body, and whether a preview is there

  const field = (name, label, value, attributes) => {
    const box = document.createElement("label");
    box.textContent = label;
    const input = Object.assign(document.createElement("input"), { name, value, required: true, autocomplete: "off" });
    for (const [key, text] of Object.entries(attributes)) input.setAttribute(key, text);
    input.addEventListener("input", previewSoon);
    box.append(input);
    return box;
  };
  const FIELDS = {
    price: (data) => [field("price", "New price", data.price ?? "", { inputmode: "decimal" })],
    add: () => [field("arm", "Name", "", { maxlength: "200" }), field("price", "Price", "", { inputmode: "decimal" })],
    alpha: (data) => [field("alpha", "New alpha, from 0 to 1", data.alpha ?? "", { inputmode: "decimal" })],
    share: (data) => [field("share", "Share of traffic in the canary, from 0 to 1", data.share || "0.05", { inputmode: "decimal" })],
  };

  const actionsOf = (data) => {
    if (data.lever === "arm") {
      const moves = data.status === "paused" ? ["resume"] : data.status === "retired" ? ["add"] : ["pause"];
      if (data.status === "retired") return moves;
      return [...moves, "price", data.pinned ? "unpin" : "pin", "reset", "retire"];
    }
    if (data.lever === "router") return data.pinned ? ["alpha", "add", "unpin"] : ["alpha", "add"];
    if (data.lever === "alpha") return ["alpha"];
    return [data.lever];
  };

  // A change is meant for the version of the router that the reader has seen. What the reader changed is seen at once, also where a
  // part still shows how it was; what somebody else changed is seen when the parts show it.
  let ownVersion = 0;
  const noteOwnVersion = (meantFor, made) => {
    if (made === meantFor + 1) ownVersion = made; // else somebody came in between
  };

  const openLever = (button) => {
    const data = { ...button.dataset };
    data.version = Math.max(Number(data.version), ownVersion);
    const actions = data.lever === "rollout" ? ["shadow", "canary", "live"].filter((mode) => mode !== data.mode || mode === "canary" || data.fallen) : actionsOf(data);
    lever = { data, action: actions[0], asked: 0 };
    const titles = {
      arm: `Change ${data.arm}`, router: `Change ${place.router}`, alpha: "Change alpha", undo: "Undo this change?",
      revoke: `Revoke all keys of ${data.name}?`, rollout: `Move the rollout of ${place.router}`,
    };
    $("lever-title").textContent = titles[data.lever];
    $("lever-error").textContent = "";
    $("lever-choices").replaceChildren(...(actions.length > 1 ? actions.map((action, index) => choice(action, index === 0)) : []));
    choose(actions[0]);
    $("lever-dialog").showModal();
  };

  const ROLLOUT = {
    shadow: { text: "To shadow", about: "The router decides and logs; the caller keeps its own choice." },
    canary: { text: "To canary", about: "A share of traffic is routed, the rest takes the baseline.", field: "share" },
    live: { text: "To live", about: "All traffic is routed." },
  };
  const described = (action) => (lever.data.lever === "rollout" ? ROLLOUT[action] : LEVERS[action]);

  const choice = (action, first) => {
    const box = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "action", value: action, checked: first });
    input.addEventListener("change", () => choose(action));
    const name = document.createElement("b");
    name.textContent = described(action).text;
    const about = document.createElement("span");
    about.className = "below";
    about.textContent = described(action).about;
    box.append(input, name, about);
    return box;
  };

  const choose = (action) => {
    lever.action = action;
    const about = described(action);
    $("lever-fields").replaceChildren(...(about && about.field ? FIELDS[about.field](lever.data) : []));
    if (action === "add" && lever.data.arm) $("lever-fields").querySelector("[name=arm]").value = lever.data.arm;
    $("lever-confirm").textContent = about ? about.text : { undo: "Undo", revoke: "Revoke" }[action];
    preview();
  };

  // A decimal comma is taken; 1,000 is not, because it may mean one or a thousand.
  const numberIn = (text) => {
    const value = /^[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text) ? NaN : Number(text.replace(",", "."));
    return Number.isFinite(value) ? value : null;
  };
  const wrongNumber = () => {
    const wrong = [...$("lever-fields").querySelectorAll("input")].find(({ name, value }) => name !== "arm" && value.trim() && numberIn(value.trim()) === null);
    return wrong ? `“${wrong.value.trim()}” is no number here: write it like 1250.5 or 0.0041.` : "";
  };

  const readFields = () => {
    const values = {};
    for (const input of $("lever-fields").querySelectorAll("input")) {
      const text = input.value.trim();
      if (!text) return null;
      values[input.name] = input.name === "arm" ? text : numberIn(text);
      if (values[input.name] === null) return null;
    }
    return values;
  };

  let previewTimer = 0;
  const previewSoon = () => {
    clearTimeout(previewTimer);
    $("lever-confirm").disabled = true;
    previewTimer = setTimeout(preview, 250);
  };
  const preview = async () => {
    const { data, action } = lever;
    const asked = ++lever.asked;
    const values = readFields();
    $("lever-error").textContent = wrongNumber();
    $("lever-preview").textContent = "";
    $("lever-confirm").disabled = values === null;
    if (values === null) return;
    const percent = (share) => `${Math.round(1000 * share) / 10}%`;
    const moved = (text) => `${data.fallen ? "The fallback ends, and the guardrail begins anew. " : ""}${text}${data.pinned ? ` ${data.pinned} is pinned, and takes every decision until it is unpinned.` : ""}`;
    const held = Number(data.holdout) ? `, but for the holdout of ${percent(data.holdout)}` : "";
    const fixed = {
      undo: () => `“${data.text}” is taken back. The undoing is a change of its own in the log.`,
      revoke: () => "Programs that use one of these keys are refused from now on. This cannot be undone; a new key can be made.",
      shadow: () => moved("Callers keep their own choice from now on; the router goes on learning from it."),
      canary: () => moved(`${percent(values.share)} of traffic will be routed, chosen by its key; the rest takes the baseline arm.`),
      live: () => moved(`All traffic will be routed from now on${held}.${data.watched ? "" : " No guardrail watches live traffic: that needs guardrail “on” and a holdout."}`),
    };
    if (fixed[action]) {
      $("lever-preview").textContent = fixed[action]();
      return;
    }
    $("lever-confirm").disabled = true;
    try {
      const found = await askJson(api("/preview"), { method: "POST", body: { action, ...armOf(data, values), ...values } });
      if (asked !== lever.asked) return;
      const back = found.undoable ? " You can undo this." : "";
      $("lever-preview").textContent = `${found.text[0].toUpperCase()}${found.text.slice(1)}${/[.!?]$/.test(found.text) ? "" : "."}${back}`;
      $("lever-confirm").disabled = false;
    } catch (error) {
      if (asked === lever.asked) $("lever-error").textContent = error.message;
    }
  };
  const armOf = (data, values) => (values.arm === undefined && data.arm ? { arm: data.arm } : {});

  const request = ({ data, action }, values) => {
    const version = { version: data.version };
    if (action === "undo") return [api("/undo"), { method: "POST", body: { position: Number(data.position), ...version } }];
    if (action === "revoke") return [`/v1/keys/${encodeURIComponent(data.name)}`, { method: "DELETE" }];
    if (data.lever === "rollout") return [api("/rollout"), { method: "POST", body: { to: action, ...values, ...version } }];
    if (action === "alpha") return [api("/alpha"), { method: "POST", body: { alpha: values.alpha, ...version } }];
    const arm = values.arm ?? data.arm ?? data.pinned;
    const body = values.price === undefined ? version : { price: values.price, ...version };
    return [api(`/arms/${encodeURIComponent(`${arm}:${action}`)}`), { method: "POST", body }];
  };

  const confirmLever = async (event) => {
    event.preventDefault();
    const values = readFields();
    if (values === null || $("lever-confirm").disabled) return;
    const { data, action } = lever;
    let made;
    $("lever-confirm").disabled = true;
    try {
      const [path, options] = request(lever, values);
      const answer = await ask(path, options);
      if (action !== "revoke") ({ version: made } = await answer.json());
      noteOwnVersion(data.version, made);
    } catch (error) {
      $("lever-error").textContent = error.status === 409 ? `${error.message} Close this and look again.` : error.message;
      $("lever-confirm").disabled = false;
      return;
    }
    $("lever-dialog").close();
    refresh();
    const arm = values.arm ?? data.arm ?? data.pinned;
    const said = { undo: "Undone.", revoke: `Revoked all keys of ${data.name}.`, alpha: `Alpha is ${values.alpha} now.` };
    const text = data.lever === "rollout" ? `The rollout is ${action} now.` : said[action] ?? `${DONE[action]} ${arm}.`;
    toast(text, action === "undo" || action === "revoke" ? null : await lastChange(), made);
  };

  const lastChange = async () => {
    try {
      const { changes } = await askJson(api("/changes?limit=1"));
      return changes.length && changes[0].undo ? changes[0] : null;
    } catch {
      return null; // the change is made all the same, and the list of changes shows it
    }
  };

  let toastTimer = 0;
  const toast = (text, change, version) => {
    $("toast-text").textContent = text;
    $("toast-undo").hidden = !change;
    if (change) Object.assign($("toast-undo").dataset, { lever: "undo", position: change.position, text: change.text, version });
    $("toast").hidden = false;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { $("toast").hidden = true; }, 12_000);
  };

  // -- what if -----------------------------------------------------------------------------------------------------------------------

  const what = () => {
    const panel = $("what-if-panel");
    if (!panel) return;
    const slider = $("alpha-slider");
    const rows = JSON.parse(panel.dataset.rows);
    const row = rows[Number(slider.value)];
    slider.setAttribute("aria-valuetext", `alpha ${row.alpha}: ${row.arm}, quality ${row.quality}, cost ${row.cost}`);
    const texts = {
      "alpha-value": row.alpha, "what-if-arm": row.arm, "what-if-change": row.change, "what-if-quality": row.quality,
      "what-if-quality-interval": row.quality_interval, "what-if-cost": row.cost, "what-if-cost-interval": row.cost_interval,
    };
    for (const [id, text] of Object.entries(texts)) $(id).textContent = text;
    for (const end of ["x1", "x2"]) $("what-if-cursor").setAttribute(end, row.x);
    const use = $("what-if-use");
    if (use) {
      use.dataset.alpha = row.alpha;
      use.disabled = row.alpha === panel.dataset.alpha;
    }
  };

  // -- keys page -----------------------------------------------------------------------------------------------------------------------

  const makeKey = async (event) => {
    event.preventDefault();
    const form = event.target;
    const roles = [...form.querySelectorAll("[name=role]:checked")].map((box) => box.value);
    $("key-maker-error").textContent = roles.length ? "" : "Choose at least one role.";
    if (!roles.length) return;
    const body = { name: form.elements.name.value, role: roles.join(",") };
    const days = Number(form.elements.expires?.value);
    if (days) body.days = days;
    try {
      const made = await askJson("/v1/keys", { method: "POST", body });
      if (!sessionStorage.getItem(KEY) && roles.includes("admin")) {
        sessionStorage.setItem(KEY, made.key); // the first key: without it this tab could not go on
        $("leave").hidden = false;
      }
      $("new-key-text").textContent = made.key;
      $("new-key").hidden = false;
      form.reset();
      refresh();
    } catch (error) {
      $("key-maker-error").textContent = error.message;
    }
  };
  const hideKey = () => {
    $("new-key-text").textContent = "";
    $("new-key").hidden = true;
  };
  const copyKey = async () => {
    try {
      await navigator.clipboard.writeText($("new-key-text").textContent);
      $("copy-key").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("new-key-text"));
    }
  };

  // -- pointer and keyboard ----------------------------------------------------------------------------------------------------------

  // The text of the step of a chart under the pointer, and a line where it is.
  const stepTip = (slots, event) => {
    const tips = JSON.parse(slots.dataset.tips);
    const box = slots.getBoundingClientRect();
    const step = Math.min(Math.max(Math.floor((tips.length * (event.clientX - box.left)) / box.width), 0), tips.length - 1);
    const here = slots.parentNode.querySelector(".here");
    const x = Number(slots.getAttribute("x")) + ((step + 0.5) * Number(slots.getAttribute("width"))) / tips.length;
    for (const end of ["x1", "x2"]) here.setAttribute(end, x);
    here.setAttribute("visibility", "visible");
    return tips[step];
  };

  const tip = (event) => {
    const over = event.target.closest ? event.target.closest("[data-tip], [data-tips]") : null;
    const box = $("tip");
    if (box.hidden !== !over || !over) for (const here of document.querySelectorAll(".here")) here.setAttribute("visibility", "hidden");
    box.hidden = !over;
    if (!over) return;
    box.textContent = over.dataset.tips ? stepTip(over, event) : over.dataset.tip;
    const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
    const top = event.clientY + 18 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 18;
    box.style.left = `${Math.max(left, 8)}px`;
    box.style.top = `${top}px`;
  };

  const partOf = (element) => element.closest("[data-part]")?.dataset.part;

  const onClick = (event) => {
    const button = event.target.closest("button");
    if (button) {
      if (button.dataset.lever) openLever(button);
      else if (button.dataset.sort) {
        const now = stateOf(button.closest("[data-part]")).parameters.sort ?? "";
        const { sort } = button.dataset;
        setParameters(partOf(button), { sort: now === `-${sort}` ? sort : `-${sort}`, offset: 0 });
      } else if (button.dataset.pageTo) setParameters(partOf(button), { offset: Number(button.dataset.pageTo) });
      return;
    }
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a") && !getSelection().toString()) location.href = row.dataset.href;
  };

  let searchTimer = 0;
  const onInput = (event) => {
    const input = event.target;
    if (input.id === "alpha-slider") what();
    else if (input.dataset.param) {
      clearTimeout(searchTimer);
      const change = () => setParameters(input.dataset.of, { [input.dataset.param]: input.value, ...(input.type === "search" ? { offset: 0 } : {}) });
      if (input.type === "search") searchTimer = setTimeout(change, 150);
      else change();
    }
  };

  const searchInView = () => {
    const found = [...document.querySelectorAll("input[type=search]")];
    const seen = found.find((input) => {
      const box = input.closest("section").getBoundingClientRect();
      return box.bottom > innerHeight / 3 && box.top < (2 * innerHeight) / 3;
    });
    return seen ?? found.at(-1);
  };

  const walkRows = (event) => {
    const from = document.activeElement;
    const table = from.closest("table.data") ?? (from.type === "search" ? document.querySelector(`table[data-of="${CSS.escape(from.dataset.of ?? "")}"]`) : null);
    if (!table) return;
    const stops = [...table.tBodies[0].rows].map((row) => row.querySelector("a, button")).filter(Boolean);
    const now = stops.findIndex((stop) => stop.closest("tr").contains(from));
    const next = event.key === "ArrowDown" ? now + 1 : now - 1;
    if (next >= 0 && next < stops.length) {
      event.preventDefault();
      stops[next].focus();
    }
  };

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") walkRows(event);
    if (event.target.matches("input, select, textarea")) return;
    const search = event.key === "/" ? searchInView() : null;
    if (search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "?") $("help-dialog").showModal();
    else if (event.key === "t") nextTheme();
    else if (event.key === "g") location.href = "/";
  };

  // -- the start -----------------------------------------------------------------------------------------------------------------------

  const nameThePage = () => {
    if (place.router === undefined) {
      document.title = `${$("title").textContent} · thrifty`;
      return;
    }
    const link = (text, href) => Object.assign(document.createElement("a"), { textContent: text, href });
    const crumbs = [link("Routers", "/")];
    let title = place.router;
    if (place.segment !== undefined) {
      const names = place.segment.split("/");
      const base = `/routers/${encodeURIComponent(place.router)}`;
      crumbs.push(" / ", link(place.router, base));
      names.slice(0, -1).forEach((name, index) => {
        crumbs.push(" / ", link(name, `${base}/segments/${names.slice(0, index + 1).map(encodeURIComponent).join("/")}`));
      });
      title = names.at(-1);
    }
    $("crumbs").append(...crumbs);
    const name = document.createElement("bdi");
    name.textContent = title;
    $("title").append(name);
    document.title = `${title} · thrifty`;
  };

  document.addEventListener("DOMContentLoaded", () => {
    paint();
    nameThePage();
    $("theme").addEventListener("click", nextTheme);
    $("leave").addEventListener("click", leave);
    $("key-form").addEventListener("submit", useKey);
    $("key-dialog").addEventListener("cancel", (event) => event.preventDefault());
    $("lever-form").addEventListener("submit", confirmLever);
    $("lever-cancel").addEventListener("click", () => $("lever-dialog").close());
    $("toast-undo").addEventListener("click", () => { $("toast").hidden = true; });
    $("toast-close").addEventListener("click", () => { $("toast").hidden = true; });
    document.addEventListener("click", onClick);
    document.addEventListener("input", onInput);
    document.addEventListener("keydown", onKey);
    document.addEventListener("pointermove", tip);
    document.addEventListener("submit", (event) => { if (event.target.id === "key-maker") makeKey(event); });
    document.addEventListener("click", (event) => {
      if (event.target.id === "hide-key") hideKey();
      if (event.target.id === "copy-key") copyKey();
    });
    document.addEventListener("filled", (event) => {
      if (event.target.dataset.part === "frontier") what();
      for (const box of event.target.querySelectorAll("[data-origin]")) box.textContent = location.origin;
    });
    document.addEventListener("visibilitychange", onVisibility);
    narrow.addEventListener("change", () => refresh());
    setInterval(tick, TICK_MS);
    setInterval(poll, POLL_MS);
    if (document.body.dataset.keys === "required" && !sessionStorage.getItem(KEY)) askForKey(null, "");
    else begin();
  });
})();
