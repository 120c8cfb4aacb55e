import { once } from 'node:events';
import { startRealMongo } from './real-mongod.ts';

/** Program that gives the test runner a replica set of one real node: prints its URL, and exits when its input ends. */
const mongo = await startRealMongo('one');
process.stdout.write(`${JSON.stringify({ url: mongo.url })}\n`);
process.stdin.resume();
await once(process.stdin, 'end');
await mongo.close();
