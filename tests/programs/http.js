// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// An HTTP server and client of Node, unaware of where their octets go.
//
//     node http.js serve PORT          files of this folder, GET and PUT
//     node http.js fetch PORT NAME..   each at once, and back; SHA-256 printed
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');

const [verb, port, ...names] = process.argv.slice(2);
const host = process.env.SERVE_AT || '127.0.0.1';

function digest(stream) {
	return new Promise((resolve, reject) => {
		const hash = crypto.createHash('sha256');
		stream.on('data', (octets) => hash.update(octets));
		stream.on('end', () => resolve(hash.digest('hex')));
		stream.on('error', reject);
	});
}

function serve() {
	const server = http.createServer(async (request, response) => {
		if (request.method === 'PUT')
			response.end(await digest(request));
		else
			fs.createReadStream(path.basename(request.url)).pipe(response);
	});
	process.on('SIGTERM', () => {
		server.close();
		server.closeAllConnections();
	});
	server.listen(Number(port), host);
}

function ask(method, name, body) {
	return new Promise((resolve, reject) => {
		const request = http.request({ host, port, method, path: `/${name}`, agent });
		request.on('response', resolve);
		request.on('error', reject);
		if (body)
			body.pipe(request);
		else
			request.end();
	});
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });

async function text(stream) {
	const parts = [];
	for await (const part of stream)
		parts.push(part);
	return Buffer.concat(parts).toString();
}

async function fetchOne(name) {
	const got = await digest(await ask('GET', name));
	const back = await text(await ask('PUT', name, fs.createReadStream(name)));
	if (got !== back)
		throw new Error(`${name}: ${got} came, ${back} went`);
	console.log(`${name} ${got}`);
}

if (verb === 'serve')
	serve();
else
	Promise.all(names.map(fetchOne)).then(() => agent.destroy());
