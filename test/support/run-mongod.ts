import { once } from 'node:events';
import { startRealMongo } from './real-mongod.ts';

/**
 * The program by which the runner of the tests has a replica set of one real node: prints its URL, and ends with its input.
 */
const mongo = await startRealMongo('one');
process.stdout.write(`${JSON.stringify({ url: mongo.url })}\n`);
process.stdin.resume();
await once(process.stdin, 'end');
await mongo.close();
