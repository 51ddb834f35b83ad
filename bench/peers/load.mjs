// The closed loop of the peers in JavaScript: the last three arguments are IN_FLIGHT SECONDS WARM_UP; see lib.sh.
import { createInterface } from 'node:readline';

const [inFlight, seconds, warmUp] = process.argv.slice(-3).map(Number);

// Keeps so many workflows in flight for so long, and waits for those that were begun.
async function load(run, length, prefix) {
    const latencies = [];
    const begin = performance.now();
    const one = async (i) => {
        for (let n = 0; performance.now() - begin < length * 1000; n++) {
            const called = performance.now();
            const input = `${prefix}-${i}-${n}`;
            const result = await run(input);
            if (result !== input) throw new Error(`${input}: the result is ${result}`);
            latencies.push(performance.now() - called);
        }
    };
    await Promise.all(Array.from({ length: inFlight }, (_, i) => one(i)));
    return { latencies: latencies.sort((a, b) => a - b), seconds: (performance.now() - begin) / 1000 };
}

// run(input): a workflow from its start to its result; inputs are unique in this process.
export async function measure(run) {
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    await load(run, warmUp, 'w');
    console.log('ready');
    await lines.next();
    const { latencies, seconds: length } = await load(run, seconds, 'm');
    const at = (share) => latencies[Math.floor(latencies.length * share)];
    console.log(`done ${latencies.length} ${length} ${at(0.5)} ${at(0.99)}`);
    await lines.next(); // until its CPU time has been read
    process.exit(0);
}
