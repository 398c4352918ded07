#!/usr/bin/env node
// GPU values in Node: gpulse serve, asked in JSON-RPC. Prints a sample, then the load three times.
'use strict';

const { spawn } = require('node:child_process');
const { createInterface } = require('node:readline');

class Gpulse {
    constructor(program, onNotification) {
        this.calls = new Map(); // what waits for an answer, by id
        this.lastId = 0;
        this.process = spawn(program, ['serve', '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
        this.process.on('error', error => this.fail(error));
        this.process.on('close', () => this.fail(new Error('gpulse serve has ended')));
        createInterface({ input: this.process.stdout }).on('line', line => {
            const message = JSON.parse(line);
            if (!('id' in message))
                return onNotification(message.method, message.params);
            const { resolve, reject } = this.calls.get(message.id);
            this.calls.delete(message.id);
            if (message.error)
                return reject(new Error(message.error.message));
            return resolve(message.result);
        });
    }

    fail(error) {
        for (const { reject } of this.calls.values())
            reject(error);
        this.calls.clear();
    }

    call(method, params = {}) {
        const id = ++this.lastId;
        return new Promise((resolve, reject) => {
            this.calls.set(id, { resolve, reject });
            this.process.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n');
        });
    }

    close() {
        this.process.stdin.end(); // the end of its input ends it
    }
}

async function main() {
    let left = 3;
    const gpulse = new Gpulse(process.env.GPULSE || 'gpulse', (method, { sample }) => {
        console.log(sample.gpus.map(gpu => `${gpu['utilization.gpu']}%`).join(' '));
        if (--left === 0)
            gpulse.close();
    });
    const sample = await gpulse.call('sample', { fields: ['index', 'name', 'memory.used'] });
    for (const gpu of sample.gpus)
        console.log(`${gpu.index} ${gpu.name}: ${(gpu['memory.used'] / 2 ** 30).toFixed(1)} GiB`);
    await gpulse.call('watch', { fields: 'utilization.gpu', interval: 0.1 });
}

main().catch(error => { console.error(error.message); process.exitCode = 1; });
