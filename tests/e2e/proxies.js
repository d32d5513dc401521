/**
 * The real nginx, Caddy, HAProxy and Apache, each started with its file in `deploy/` as it is, but for ports and paths.
 * What such a file is put into, as Debian's packages have it, is made here.
 *
 * Only the programs are used: they run in the foreground, on loopback, as long as the test does.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer, connect } from "node:net";
import { join } from "node:path";
import { folder, remove, until } from "./support.js";

/** The name that the files are for. */
export const NAME = "wind.example";
/** Where Debian has programs of the system. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
/** Other programs may take a port between two starts; so it is one that no connection is given by itself. */
const PORTS = { first: 20_000, count: 10_000 };
const STARTS_MAX = 5;
const isRoot = process.getuid?.() === 0;

/** @typedef {{ http: number, tcp: number }} Ports */
/** @typedef {{ folder: string, ports: Ports, cert: string, key: string, both: string }} Place */
/**
 * @typedef {object} Kind
 * @property {string} file in `deploy/`
 * @property {boolean} isSecure
 * @property {(place: Place) => [string, string][]} places what is another in the file, beside the server's ports
 * @property {(place: Place, site: string) => string} main what the file, at `site`, is put into
 * @property {(main: string, site: string, folder: string) => [string, ...string[]]} command
 */

/** @type {(place: Place) => [string, string][]} */
const certificates = ({ cert, key }) => [
  ["/etc/ssl/wind.example.pem", cert],
  ["/etc/ssl/wind.example.key", key],
];

/** @type {(place: Place) => [string, string][]} */
const plain = ({ ports }) => [["listen 80;", `listen 127.0.0.1:${ports.http};`]];

/** @type {Pick<Kind, "main" | "command">} */
const NGINX = {
  main: ({ folder }, site) =>
    `${isRoot ? "user www-data;" : ""} error_log stderr; pid ${folder}/pid; events {} http { access_log off; gzip on;
     ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
     include ${site}; }`,
  command: (main, _site, folder) => ["nginx", "-p", folder, "-c", main, "-e", "stderr", "-g", "daemon off;"],
};

const MODULES = "mpm_event authz_core headers proxy proxy_http proxy_wstunnel ssl socache_shmcb filter deflate reqtimeout";
const COMPRESSED = "text/html text/plain text/xml text/css text/javascript application/javascript application/json";

/** @type {Record<string, Kind>} */
export const KINDS = {
  nginx: {
    file: "nginx.conf",
    isSecure: true,
    places: (place) => [["listen 443 ssl", `listen 127.0.0.1:${place.ports.http} ssl`], ...certificates(place)],
    ...NGINX,
  },
  stock: {
    file: "nginx-stock.conf",
    isSecure: false,
    places: plain,
    ...NGINX,
  },
  path: { file: "nginx-path.conf", isSecure: false, places: plain, ...NGINX },
  caddy: {
    file: "Caddyfile",
    isSecure: true,
    places: () => [],
    main: ({ folder, ports }, site) =>
      `{\n admin off\n local_certs\n skip_install_trust\n auto_https disable_redirects\n default_bind 127.0.0.1\n` +
      ` https_port ${ports.http}\n storage file_system ${folder}\n}\nimport ${site}\n`,
    command: (main) => ["caddy", "run", "--adapter", "caddyfile", "--config", main],
  },
  haproxy: {
    file: "haproxy.cfg",
    isSecure: true,
    places: ({ ports, both }) => [
      ["bind :443 ssl", `bind 127.0.0.1:${ports.http} ssl`],
      ["bind :8443 ssl", `bind 127.0.0.1:${ports.tcp} ssl`],
      ["/etc/haproxy/wind.example.pem", both],
    ],
    main: () =>
      "global\n  maxconn 1000\ndefaults\n  mode http\n  timeout connect 5000\n  timeout client 50000\n  timeout server 50000\n",
    command: (main, site) => ["haproxy", "-db", "-f", main, "-f", site],
  },
  plainHaproxy: {
    file: "haproxy.cfg",
    isSecure: false,
    places: ({ ports }) => [["bind :80", `bind 127.0.0.1:${ports.http}`]],
    main: () => "global\n  maxconn 1000\n",
    command: (main, site) => ["haproxy", "-db", "-f", main, "-f", site],
  },
  apache: {
    file: "apache.conf",
    isSecure: true,
    places: (place) => [["<VirtualHost *:443>", `<VirtualHost *:${place.ports.http}>`], ...certificates(place)],
    main: ({ folder, ports }, site) =>
      `ServerRoot ${folder}\nServerName localhost\nDefaultRuntimeDir ${folder}\nPidFile ${folder}/pid\n` +
      MODULES.split(" ")
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`)
        .join("") +
      `${isRoot ? "User www-data\nGroup www-data\n" : ""}ErrorLog ${folder}/error.log\n` +
      `SSLSessionCache shmcb:${folder}/sessions(512000)\nListen 127.0.0.1:${ports.http} https\n` +
      `AddOutputFilterByType DEFLATE ${COMPRESSED}\nInclude ${site}\n`,
    command: (main, _site, folder) => ["apache2", "-d", folder, "-f", main, "-DFOREGROUND"],
  },
};

/**
 * A text with other words in the place of some, each of which is in it.
 * @param {string} text
 * @param {[string, string][]} places
 */
export function replaced(text, places) {
  return places.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `${from} is not in the file`);
    return text.replaceAll(from, to);
  }, text);
}

/** A port of this machine's that nobody listens on. */
export async function freePort() {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    const isFree = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

/** @type {Set<Proxy>} */
const running = new Set();
// Whatever ends this process, none outlives it.
process.on("exit", () => running.forEach((proxy) => proxy.signal("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

/** A proxy in front of a server. */
export class Proxy {
  /** @type {import("node:child_process").ChildProcess | undefined} */ #child;
  /** @type {[string, ...string[]]} */ #command = [""];
  /** @type {Ports} */ ports = { http: 0, tcp: 0 };
  /** @type {string[]} */ output = [];

  /**
   * @param {string} name
   * @param {Kind} kind
   * @param {string} folder
   */
  constructor(name, kind, folder) {
    this.name = name;
    this.kind = kind;
    this.folder = folder;
  }

  /**
   * @param {string} name one of `KINDS`
   * @param {Ports} server the ports of the server behind it
   * @param {string} [site] what it has in place of its file in `deploy/`
   */
  static async start(name, server, site) {
    const kind = /** @type {Kind} */ (KINDS[name]);
    const own = new Proxy(name, kind, await folder(`anemone-${name}-`));
    // A server that was started by root has its work done by somebody else.
    await chmod(own.folder, 0o755);
    const [cert, key, both] = ["cert.pem", "key.pem", "both.pem"].map((name) => join(own.folder, name));
    const place = { folder: own.folder, ports: own.ports, cert: String(cert), key: String(key), both: String(both) };
    await certify(place);
    const text = site ?? await readFile(new URL(`../../deploy/${kind.file}`, import.meta.url), "utf8");
    for (let attempt = 1; ; attempt += 1) {
      place.ports = own.ports = { http: await freePort(), tcp: await freePort() };
      /** @type {[string, string][]} */
      const upstream = [
        ["127.0.0.1:8080", `127.0.0.1:${server.http}`],
        ...(text.includes(":8081") ? [/** @type {[string, string]} */ (["127.0.0.1:8081", `127.0.0.1:${server.tcp}`])] : []),
      ];
      const [main, included] = [join(own.folder, "main.conf"), join(own.folder, "site.conf")];
      await writeFile(included, replaced(text, [...upstream, ...kind.places(place)]));
      await writeFile(main, kind.main(place, included));
      own.#command = kind.command(main, included, own.folder);
      try {
        await own.run();
        return own;
      } catch (error) {
        await own.kill();
        if (attempt === STARTS_MAX) throw error;
      }
    }
  }

  /** Starts it, and waits until it listens. */
  async run() {
    const [program, ...args] = this.#command;
    const env = { ...process.env, PATH, HOME: this.folder, XDG_DATA_HOME: this.folder, XDG_CONFIG_HOME: this.folder };
    // In a group of its own, so that its workers go with it.
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], detached: true, env });
    this.#child = child;
    running.add(this);
    child.on("error", (error) => this.output.push(`${program}: ${error.message}`));
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => this.output.push(text));
    const ports = this.kind === KINDS.haproxy ? [this.ports.http, this.ports.tcp] : [this.ports.http];
    for (const port of ports) {
      await until(`${program} to listen`, async () => {
        if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`${program} ended:\n${this.output.join("")}`);
        }
        return await isListening(port);
      });
    }
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    const pid = this.#child?.pid;
    try {
      if (pid !== undefined) process.kill(-pid, signal);
    } catch {
      // They are gone already.
    }
  }

  /** Ends it at once, and every connection with it. */
  async kill() {
    const child = this.#child;
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = once(child, "exit");
      this.signal("SIGKILL");
      await gone;
    }
    // Its workers may be a moment later.
    await until("the proxy's port to be free", async () => !(await isListening(this.ports.http)));
    running.delete(this);
  }

  async remove() {
    await this.kill();
    await remove(this.folder);
  }

  /** Removes those that a test that failed has left: this process would wait for them. */
  static async removeAll() {
    await Promise.all([...running].map((proxy) => proxy.remove()));
  }

  /** As a browser names it. */
  get origin() {
    return `${this.kind.isSecure ? "https" : "http"}://${NAME}:${this.ports.http}`;
  }
}

/** @param {number} port */
async function isListening(port) {
  return await new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}

/** @param {Place} place */
async function certify({ cert, key, both }) {
  const names = ["-subj", `/CN=${NAME}`, "-addext", `subjectAltName=DNS:${NAME}`];
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  execFileSync("openssl", ["req", "-x509", ...newKey, ...names, "-days", "2", "-keyout", key, "-out", cert], {
    stdio: "pipe",
  });
  await writeFile(both, (await readFile(cert, "utf8")) + (await readFile(key, "utf8")), { mode: 0o600 });
}
