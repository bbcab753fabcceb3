"use strict";
const SAMPLES = 120;  // maximum number of values of a trend: one value per second
const byId = id => document.getElementById(id);
const element = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
// Set the text of a node. An unchanged node remains, so the selection and the focus also remain.
const setText = (node, text) => {
  const inside = node.firstChild;
  if (!inside) { if (text !== "") node.append(text); }
  else if (inside.data !== text) inside.data = text;
};
const setClass = (node, name) => { if (node.className !== name) node.className = name; };
const durationText = ms => ms === null || ms === undefined ? "" :
  ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)}\u00a0ms` :
  ms < 120000 ? `${(ms / 1000).toFixed(1)}\u00a0s` : `${Math.round(ms / 60000)}\u00a0min`;
const countText = (number, one, many) => `${number} ${number === 1 ? one : many}`;

// Update the children of an element, which has one child for each item. An item of the previous call keeps its child.
// The last item is the oldest item, so items with equal keys have numbers from the end of the list.
const known = new WeakMap();
const updateChildren = (parent, items, key, make, update) => {
  const before = known.get(parent) || new Map(), now = new Map(), times = new Map();
  const named = [...items].reverse().map(item => {
    const name = key(item), number = times.get(name) || 0;
    times.set(name, number + 1);
    return [`${name}#${number}`, item];
  }).reverse();
  for (const [name, item] of named) now.set(name, before.get(name) || make(item));
  for (const [name, node] of before) if (!now.has(name)) node.remove();
  let place = parent.firstElementChild;
  for (const [name, item] of named) {
    const node = now.get(name);
    if (node === place) place = place.nextElementSibling; else parent.insertBefore(node, place);
    update(node, item);
  }
  known.set(parent, now);
};

// Create a table. Parameters: its name, its caption, a function that returns the key of an item, and the columns. A
// column consists of a header, a class, and a function that returns a cell of an item: a text, or a pair of a text and a
// class. The ARIA roles are explicit, because a narrow page shows rows as blocks.
let captionCount = 0;
const table = (name, caption, key, columns) => {
  const id = `caption-${++captionCount}`;
  const body = element("tbody", {role: "rowgroup"});
  const heads = columns.map(([head, kind]) => element("th", {scope: "col", role: "columnheader", class: kind}, head));
  const inside = element("table", {"data-table": name, role: "table", "aria-labelledby": id},
    element("caption", {id}, caption),
    element("thead", {role: "rowgroup"}, element("tr", {role: "row"}, ...heads)), body);
  const node = element("div", {class: "table", role: "group", "aria-labelledby": id}, inside);
  const row = () => element("tr", {role: "row"}, ...columns.map(([head], index) => index === 0 ?
    element("th", {scope: "row", role: "rowheader", "data-head": head}, element("span")) :
    element("td", {role: "cell", "data-head": head}, element("span"))));
  const fill = (node, item) => columns.forEach(([, kind, value], index) => {
    const cell = value(item), [text, look] = Array.isArray(cell) ? cell : [cell, ""];
    setText(node.cells[index].firstChild, String(text));
    setClass(node.cells[index], [kind, look, text === "" ? "empty" : ""].filter(Boolean).join(" "));
  });
  node.show = items => {
    updateChildren(body, items, key, row, fill);
    inside.hidden = items.length === 0;
    // The keyboard must be able to focus a scrollable table.
    if (node.scrollWidth > node.clientWidth) node.tabIndex = 0; else node.removeAttribute("tabindex");
  };
  return node;
};

const typeClasses = {RSPrimary: "good", Standalone: "good", Mongos: "good", LoadBalancer: "good", Unknown: "bad"};
const ifPool = (pool, value) => pool ? value(pool) : "";
const problemTable = () => table("wrong", "Problems, the most serious first", each => JSON.stringify([each.what, each.server, each.error]), [
  ["problem", "", each => [each.what, "bad"]], ["server", "", each => each.server], ["duration", "number", each => durationText(each.sinceMS)],
  ["since", "", each => each.event], ["in process", "wide", each => each.in.join(", ")], ["times", "number", each => each.count],
  ["error", "wide", each => each.error]]);
const servers = () => table("servers", "Servers and their pools", each => each.address, [
  ["server", "", each => each.address], ["type", "", each => [each.type, typeClasses[each.type] || ""]],
  ["round trip", "number", each => durationText(each.roundTripMS)],
  ["pool", "", ({pool}) => ifPool(pool, () => [pool.state, pool.state === "ready" ? "" : "wait"])],
  ["in use", "number", ({pool}) => ifPool(pool, () => `${pool.inUse} of ${pool.maxPoolSize || "∞"}`)],
  ["available", "number", ({pool}) => ifPool(pool, () => pool.available)],
  ["connecting", "number", ({pool}) => ifPool(pool, () => pool.pending)],
  ["waiting", "number", ({pool}) => ifPool(pool, () => [pool.waiting, pool.waiting ? "bad" : ""])],
  ["longest wait", "number", ({pool}) => ifPool(pool, () => durationText(pool.oldestWaitMS))],
  ["error", "wide", each => each.error]]);
const operations = () => table("operations", "Operations that use a connection or wait, the longest first",
  each => JSON.stringify([each.greenlet, each.phase, each.connection, each.operation, each.server]), [
  ["phase", "", each => [each.phase, each.phase === "on a connection" ? "" : "wait"]], ["operation", "wide", each => each.operation],
  ["server", "", each => each.server], ["connection", "number", each => each.connection === null ? "" : each.connection],
  ["duration", "number", each => durationText(each.sinceMS)], ["greenlet", "wide", each => each.greenlet]]);
const phases = [["selection", "selectionMS"], ["check-out", "checkOutMS"], ["connecting", "connectingMS"], ["server", "serverMS"],
  ["network", "networkMS"], ["decoding", "decodingMS"], ["back-off", "backOffMS"], ["driver", "driverMS"]];
// The phases of a slow operation, the longest phase first. Phases below one percent of the duration are omitted.
const phaseText = each => phases.map(([head, name]) => [each[name], head]).filter(([ms]) => ms > each.durationMS / 100)
  .sort(([one], [other]) => other - one).map(([ms, head]) => `${head} ${durationText(ms)}`).join(", ");
const slow = () => table("slow", "Slow operations and the durations of their phases, the latest first",
  each => JSON.stringify([each.operation, each.server, each.durationMS, ...phases.map(([, name]) => each[name])]), [
  ["operation", "", each => each.operation], ["duration", "number", each => durationText(each.durationMS)], ["phases", "", phaseText],
  ["attempts", "number", each => each.tries], ["ago", "number", each => durationText(each.agoMS)], ["error", "wide", each => each.error || ""],
  ["text", "wide", each => each.text || ""]]);
const events = () => table("history", "Failed checks, elections, added and removed servers, the latest first",
  each => JSON.stringify([each.what, each.server, each.error]), [
  ["event", "", each => [each.what, /failed|lost|unknown/i.test(each.what) ? "bad" : ""]], ["server", "", each => each.server],
  ["times", "number", each => each.times], ["ago", "number", each => durationText(each.agoMS)], ["reason", "wide", each => each.error]]);

const collapsibleList = (title, inside) => {
  const heading = element("summary", null, title), node = element("details", null, heading, inside);
  node.addEventListener("toggle", () => node.open && node.show());
  node.show = items => {
    node.items = items || node.items;
    setText(heading, `${title}: ${node.items.length}`);
    if (node.open) inside.show(node.items);
  };
  return node;
};
const retries = each => `Retries after overload: ${each.retries} (${each.slept.toFixed(1)} s of backoff, ${each.exhausted} operations without ` +
  `a token, ${each.tokens} remaining tokens). Other retries: ${each.others}. Failed attempts: ${each.errors}.`;

const client = () => {
  const heading = element("h3"), counters = element("p", {class: "quiet", "data-table": "retries"});
  const lists = {operations: collapsibleList("Operations", operations()), slow: collapsibleList("Slow operations", slow()), history: collapsibleList("Events", events())};
  const pools = servers();
  const node = element("section", null, heading, pools, counters, ...Object.values(lists));
  node.show = each => {
    node.dataset.client = each.number;
    setText(heading, [`Client ${each.number}`, each.application, `${each.topology} ${each.replicaSet}`].filter(text => text.trim()).join(" · "));
    pools.show(each.servers);
    setText(counters, retries(each.retries));
    for (const [name, list] of Object.entries(lists)) list.show(each[name]);
  };
  return node;
};

const process = () => {
  const title = element("h2"), words = element("span", {class: "quiet"}), clients = element("div"), error = element("p", {class: "bad"});
  const folds = element("details", null, element("summary", null, title, " ", words), error, clients);
  const node = element("article", null, folds);
  node.show = each => {
    node.dataset.process = each.process;
    setText(title, `Process ${each.process}`);
    const wrong = latest.summary.wrong.filter(problem => problem.in.includes(each.process)).map(problem => problem.what);
    setText(words, [countText(each.clients.length, "client", "clients"), ...new Set(wrong)].join(" · "));
    setText(error, each.error || "");
    if (folds.open) updateChildren(clients, each.clients, item => item.number, client, (node, item) => node.show(item));
  };
  folds.addEventListener("toggle", () => show(latest));
  folds.open = latest.processes.length === 1;
  return node;
};

const trend = (caption, look) => {
  const node = byId("trend").content.firstElementChild.cloneNode(true), values = [];
  const [words, line] = [node.querySelector("figcaption"), node.querySelector("polyline")];
  node.classList.add(look);
  node.add = value => {
    values.push(value);
    if (values.length > SAMPLES) values.shift();
    const most = Math.max(...values), scale = Math.max(most, 1);
    setText(words, `${caption}: ${Math.round(value)} (maximum of ${countText(values.length, "sample", "samples")}: ${Math.round(most)})`);
    const first = SAMPLES - values.length;
    line.setAttribute("points", values.map((each, index) => `${first + index},${(29 - 28 * each / scale).toFixed(1)}`).join(" "));
  };
  byId("trends").append(node);
  return node;
};
const trends = {
  requests: trend("Requests per second", "is-good"), waiting: trend("Waiting for a connection", "is-wait"),
  errors: trend("Failed attempts per second", "is-bad"),
};
// The counters of a reply, and the growth of the counters since the last refresh. The growth includes only processes and
// clients that exist in both replies.
const counts = reply => new Map(reply.processes.flatMap(each => each.error ? [] : [
  [`requests ${each.process}`, each.requests],
  ...each.clients.map(item => [`errors ${each.process} ${item.number}`, item.retries.errors])]));
const growth = (before, now, what) => [...now].reduce((sum, [name, count]) =>
  sum + (name.startsWith(what) && before.has(name) ? Math.max(0, count - before.get(name)) : 0), 0);
let last = null;
const updateTrends = reply => {
  const now = {at: performance.now(), counts: counts(reply)};
  if (last) {
    const seconds = (now.at - last.at) / 1000;
    const ownRequests = reply.processes.length;  // the refresh itself increases the counter of each process by one
    trends.requests.add(Math.max(0, growth(last.counts, now.counts, "requests") - ownRequests) / seconds);
    trends.waiting.add(reply.summary.waiting);
    trends.errors.add(growth(last.counts, now.counts, "errors") / seconds);
  }
  last = now;
};

const problems = problemTable();
byId("wrong").append(problems);
const totals = {processes: "processes", clients: "clients", inUse: "connections in use", total: "connections", waiting: "waiting", errors: "failed attempts"};
let latest = null;
const show = reply => {
  latest = reply;
  const {summary} = reply;
  setText(byId("verdict"), !reply.processes.length ? "No process publishes its state in this directory." : !summary.wrong.length ? "No problems." :
    `${countText(summary.wrong.length, "problem", "problems")}: ${[...new Set(summary.wrong.map(each => each.what))].join(", ")}`);
  setClass(byId("verdict"), summary.wrong.length ? "bad" : "good");
  problems.show(summary.wrong);
  updateChildren(byId("totals"), Object.keys(totals), name => name, name => element("div", null, element("dt", null, totals[name]), element("dd")),
    (node, name) => setText(node.lastChild, String(summary[name])));
  updateChildren(byId("processes"), reply.processes, each => each.process, process, (node, each) => node.show(each));
};
const refresh = async () => {
  try {
    const reply = await fetch("?format=json", {cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(5000)});
    if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
    const state = await reply.json();
    show(state);
    updateTrends(state);
    setText(byId("time"), `State as of ${new Date().toLocaleTimeString()}`);
    setText(byId("trouble"), "");
  } catch (error) {
    setText(byId("trouble"), `The page was not refreshed: ${error.message}`);
  }
  setTimeout(refresh, 1000);
};
refresh();
