/**
 * The reading of a topic or a run over each transport: lines to copy, with this server's address. Pure.
 *
 * @typedef {object} Way
 * @property {string} id of `anemone sub --via`, or close to it
 * @property {string} title
 * @property {string} about
 * @property {{ title: string, code: string }[]} lines
 */

/**
 * Returns the path for a multiplexed request: the server's own path, without the prefix of a proxy.
 * @param {string} url of a topic or a run
 */
export function targetOf(url) {
  return /\/(topics|runs)\/[^/]*$/.exec(new URL(url).pathname)?.[0] ?? "/";
}

/**
 * Returns the URL for multiplexed requests.
 * @param {string} url of a topic or a run
 */
export function muxOf(url) {
  return `${url.slice(0, url.length - targetOf(url).length)}/ws`.replace(/^http/, "ws");
}

/**
 * @param {string} url of the topic, for instance `http://localhost:8080/topics/wind`, or of a run
 * @returns {Way[]}
 */
export function waysTo(url) {
  // A run is read from its beginning, and has an end.
  const isRun = targetOf(url).startsWith("/runs/");
  return [...polls(url, isRun), ...streams(url, isRun), ...sockets(url)];
}

/**
 * @param {string} url
 * @param {boolean} isRun
 * @returns {Way[]}
 */
function polls(url, isRun) {
  const first = isRun ? "earliest" : "latest";
  return [
    {
      id: "poll",
      title: "Poll",
      about: `One request, one reply: ${isRun ? "the events so far" : "the newest event"}, and the position to ask for next with ?after=.`,
      lines: lines(url, "poll", {
        shell: `curl '${url}'`,
        script: `const { events, next } = await (await fetch("${url}")).json();\nconsole.log(events, next);`,
        python: `import json, urllib.request\nprint(json.load(urllib.request.urlopen("${url}")))`,
      }),
    },
    {
      id: "long-poll",
      title: "Long poll",
      about: "The server holds the request until there is an event, here for 30 seconds at most.",
      lines: lines(url, "long-poll", {
        shell: `curl '${url}?after=${first}&wait=30'`,
        script: `for (let after = "${first}"; ; ) {\n  const page = await (await fetch(\`${url}?wait=30&after=\${after}\`)).json();\n  console.log(page.events);\n${isRun ? "  if (page.end) break;\n" : ""}  after = page.next;\n}`,
        python: `import json, urllib.request\nafter = "${first}"\nwhile True:\n    page = json.load(urllib.request.urlopen(f"${url}?wait=30&after={after}"))\n    print(page["events"])\n${isRun ? '    if "end" in page:\n        break\n' : ""}    after = page["next"]`,
      }),
    },
  ];
}

/**
 * @param {string} url
 * @param {boolean} isRun
 * @returns {Way[]}
 */
function streams(url, isRun) {
  const endless = isRun ? "One reply, which ends with the run." : "One reply without an end.";
  return [
    {
      id: "sse",
      title: "Server-sent events",
      about: `${endless} A browser continues by itself where it was cut off.`,
      lines: lines(url, "sse", {
        shell: `curl -N '${url}' -H 'Accept: text/event-stream'`,
        script: `new EventSource("${url}").onmessage = ({ data }) => console.log(JSON.parse(data));`,
        python: `import urllib.request\nrequest = urllib.request.Request("${url}", headers={"Accept": "text/event-stream"})\nfor line in urllib.request.urlopen(request):\n    if line.startswith(b"data: "):\n        print(line[6:].decode().strip(), flush=True)`,
      }),
    },
    {
      id: "ndjson",
      title: "Lines of JSON",
      about: `${endless} Each line is an object: easy for programs.`,
      lines: lines(url, "ndjson", {
        shell: `curl -N '${url}' -H 'Accept: application/x-ndjson'`,
        script: `const reply = await fetch("${url}", { headers: { accept: "application/x-ndjson" } });\nfor await (const text of reply.body.pipeThrough(new TextDecoderStream())) console.log(text);`,
        python: `import json, urllib.request\nrequest = urllib.request.Request("${url}", headers={"Accept": "application/x-ndjson"})\nfor line in urllib.request.urlopen(request):\n    print(json.loads(line), flush=True)`,
      }),
    },
  ];
}

/**
 * @param {string} url
 * @returns {Way[]}
 */
function sockets(url) {
  const socket = url.replace(/^http/, "ws");
  const mux = muxOf(url);
  const target = targetOf(url);
  return [
    {
      id: "ws",
      title: "WebSocket",
      about: "Each message is the data of one event, and nothing else.",
      lines: lines(url, "ws", {
        shell: `websocat '${socket}'`,
        script: `new WebSocket("${socket}").onmessage = ({ data }) => console.log(data);`,
        python: `from websockets.sync.client import connect  # pip install websockets\nfor message in connect("${socket}"):\n    print(message)`,
      }),
    },
    {
      id: "events",
      title: "WebSocket with positions",
      about: "Each message has the position of its event, so that a new connection continues where the last one ended.",
      lines: lines(url, "ws", {
        shell: `websocat --protocol anemone.events '${socket}'`,
        script: `new WebSocket("${socket}", "anemone.events").onmessage = ({ data }) => console.log(JSON.parse(data));`,
        python: `from websockets.sync.client import connect  # pip install websockets\nfor message in connect("${socket}", subprotocols=["anemone.events"]):\n    print(message)`,
      }),
    },
    {
      id: "mux",
      title: "Multiplexed WebSocket",
      about: "Many requests on one connection, each with an id: here 1.",
      lines: lines(url, "mux", {
        shell: `(printf 'GET 1 ${target}\\n'; sleep 60) | websocat -n --protocol anemone.v1 '${mux}'`,
        script: `const socket = new WebSocket("${mux}", "anemone.v1");\nsocket.onopen = () => socket.send("GET 1 ${target}\\n");\nsocket.onmessage = ({ data }) => console.log(data);`,
        python: `from websockets.sync.client import connect  # pip install websockets\nsocket = connect("${mux}", subprotocols=["anemone.v1"])\nsocket.send("GET 1 ${target}\\n")\nfor message in socket:\n    print(message)`,
      }),
    },
  ];
}

/**
 * @param {string} url
 * @param {string} via
 * @param {{ shell: string, script: string, python: string }} code
 */
function lines(url, via, { shell, script, python }) {
  return [
    { title: "Terminal", code: shell },
    { title: "JavaScript", code: script },
    { title: "Python", code: python },
    { title: "anemone", code: `anemone sub --via ${via} '${url}'` },
  ];
}
