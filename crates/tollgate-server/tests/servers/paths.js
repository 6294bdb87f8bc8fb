// Serves the resources named on the command line, found as Node's documentation says: by the path of a URL.
const http = require("node:http");
const [port, ...resources] = process.argv.slice(2);

http.createServer((request, response) => {
  let path = null;
  try {
    // With a base, `//h/login` is a URL with the host `h`.
    path = process.env.WITH_BASE
      ? new URL(request.url, "http://localhost").pathname
      : new URL(`http://localhost${request.url}`).pathname;
  } catch {
    // What is no URL is no resource.
  }
  const found = resources.includes(path);
  const body = found ? `resource ${path}` : "none";
  response.writeHead(found ? 200 : 404, { "content-length": Buffer.byteLength(body) });
  response.end(body);
}).listen(Number(port), "127.0.0.1");
