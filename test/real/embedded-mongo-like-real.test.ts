import test, { type ExecutionContext } from 'ava';
import { EJSON, Int32, Long } from 'bson';
import * as fc from 'fast-check';
import mongoose from 'mongoose';
import { startEmbeddedMongo } from '../../scripts/embedded/mongo/server.ts';
import { makeTempDir } from '../scripts/embedded/mongo/mongo-fixture.ts';
import { command, createIndexes, documents, type Command } from '../support/mongo-commands.ts';
import type { Fields } from '../support/mongo-values.ts';
import { requireMongod, startRealMongo } from '../support/real-mongod.ts';

/** The default is a few runs, the same each time. LIKE_REAL_RUNS=5000 makes 5000 runs, different each time. */
const requestedRuns = process.env.LIKE_REAL_RUNS;
const numRuns = Number(requestedRuns ?? 150);
const runs = { numRuns, ...(requestedRuns === undefined && { seed: 17 }) };
const indexRuns = { ...runs, numRuns: Math.ceil(numRuns / 10) };

const unsupportedMessage = /not supported by the embedded MongoDB; set MONGODB_URL/;
/** Preserves the BSON number types in replies. */
const typed = { promoteValues: false, promoteLongs: false };
const show = (value: unknown): string => EJSON.stringify(value, { relaxed: false });

/** Index specifications by collection: one of each kind of index in the product, on fields that the commands use. */
const collections: Record<string, Fields[]> = {
  plain: [],
  unique: [{ key: { a: new Int32(1) }, name: 'a', unique: true }],
  compound: [
    { key: { a: new Int32(1), b: new Int32(-1) }, name: 'ab' },
    { key: { 'c.d': new Int32(1) }, name: 'cd' },
  ],
  partial: [
    {
      key: { a: new Int32(-1), 'c.d': new Int32(1) },
      name: 'partial',
      unique: true,
      partialFilterExpression: { b: new Int32(1) },
    },
  ],
};

interface Server {
  readonly db: mongoose.mongo.Db;
  readonly session: mongoose.mongo.ClientSession;
}

/**
 * The parts of a reply that clients use: of a failure only the codes, because messages are for people; of a success
 * everything that drivers read.
 */
interface Reply {
  readonly text: string;
  readonly isRefused: boolean;
  /** Some statements of the command may have been executed. */
  readonly isPartial: boolean;
}

async function run(
  { db, session }: Server,
  collection: string,
  { name, body }: Command,
  txnNumber: Long | null,
): Promise<Reply> {
  const whole = { [name]: collection, ...body, ...(txnNumber !== null && { txnNumber }) };
  try {
    const reply: Fields = await db.command(whole, { ...typed, ...(txnNumber !== null && { session }) });
    const { n, nModified, value, upserted, lastErrorObject, numIndexesBefore, numIndexesAfter, cursor } =
      reply;
    const writeErrors = (reply['writeErrors'] ?? []) as Fields[];
    const indexes = { numIndexesBefore, numIndexesAfter };
    const results = { n, nModified, value, upserted, lastErrorObject, ...indexes };
    const found = cursor === undefined ? [] : await readAll(db, collection, cursor as Cursor);
    const rows = found.map(show);
    const text = [
      show(results),
      ...writeErrors.map(({ index, ...error }) => `${show(index)}: ${showError(error)}`),
      // Without a sort, the order of rows is undefined.
      ...(body['sort'] === undefined ? rows.toSorted() : rows),
    ];
    const isRefused = writeErrors.some(({ errmsg }) => unsupportedMessage.test(errmsg as string));
    return { text: text.join('\n'), isRefused, isPartial: true };
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoServerError)) throw error;
    return { text: showError(error), isRefused: unsupportedMessage.test(error.message), isPartial: false };
  }
}

const showError = ({ code, codeName, keyPattern, keyValue }: Fields): string =>
  show({ code, codeName, keyPattern, keyValue });

interface Cursor {
  readonly id: Long;
  readonly firstBatch: Fields[];
}

async function readAll(db: Server['db'], collection: string, { id, firstBatch }: Cursor): Promise<Fields[]> {
  const found = [...firstBatch];
  for (let getMore = id; !getMore.isZero();) {
    const { cursor } = await db.command({ getMore, collection }, typed);
    const { id: next, nextBatch } = cursor as { id: Long; nextBatch: Fields[] };
    found.push(...nextBatch);
    getMore = next;
  }
  return found;
}

async function useServers(t: ExecutionContext): Promise<[embedded: Server, real: Server]> {
  const embedded = await startEmbeddedMongo({ dir: await makeTempDir(t), sync: false });
  t.teardown(() => embedded.close());
  const real = await startRealMongo('one');
  t.teardown(() => real.close());
  await real.command(0, { setParameter: 1, ttlMonitorEnabled: false });
  const open = async (url: string): Promise<Server> => {
    const client = await mongoose.mongo.MongoClient.connect(url, { retryWrites: false });
    t.teardown(() => client.close());
    return { db: client.db('like'), session: client.startSession() };
  };
  return [await open(embedded.url), await open(real.url)];
}

/** Sends the same commands to both servers, and compares the replies. */
class Comparison {
  readonly counts = { equal: 0, refused: 0 };
  readonly #t: ExecutionContext;
  readonly #servers: readonly [embedded: Server, real: Server];
  #txnNumber = 0;

  constructor(t: ExecutionContext, servers: readonly [Server, Server]) {
    this.#t = t;
    this.#servers = servers;
  }

  /** Stops early if part of a command was rejected, because the documents on the two servers then differ. */
  async compareAll(collection: string, commands: readonly Command[]): Promise<void> {
    const sent: Command[] = [];
    for (const one of commands) {
      sent.push(one);
      const refused = await this.#compare(collection, one, sent);
      if (refused?.isPartial === true) return;
    }
  }

  async #compare(collection: string, one: Command, sent: readonly Command[]): Promise<Reply | null> {
    this.#txnNumber += 1;
    const txnNumber = one.isRetried ? Long.fromNumber(this.#txnNumber) : null;
    const [embedded, real] = this.#servers;
    for (let attempt = 0; attempt < (one.isRetried ? 2 : 1); attempt += 1) {
      const reply = await run(embedded, collection, one, txnNumber);
      if (reply.isRefused) {
        this.counts.refused += 1;
        return reply;
      }
      const expected = await run(real, collection, one, txnNumber);
      const message = `${collection}, attempt ${attempt + 1}:\n${sent.map(show).join('\n')}`;
      if (reply.text !== expected.text) this.#t.is(reply.text, expected.text, message);
    }
    this.counts.equal += 1;
    return null;
  }
}

const plainCommand = (name: string, body: Fields): Command => ({ name, body, isRetried: false });
const insertEach = (list: readonly Fields[]): Command[] =>
  list.map((document) => plainCommand('insert', { documents: [document] }));
const readEverything = plainCommand('find', { sort: { _id: new Int32(1) } });

requireMongod(test)('the embedded MongoDB replies and stores data like a real one, or refuses', async (t) => {
  t.timeout(3_600_000);
  const servers = await useServers(t);
  for (const [collection, indexes] of Object.entries(collections)) {
    for (const { db } of servers) {
      await db.command({ insert: collection, documents: [{ _id: 1 }] });
      for (const index of indexes) await db.command({ createIndexes: collection, indexes: [index] });
    }
  }
  const comparison = new Comparison(t, servers);

  const names = fc.constantFrom(...Object.keys(collections));
  const commands = fc.array(command, { minLength: 3, maxLength: 6 });
  const commandProperty = fc.asyncProperty(names, documents, commands, async (collection, seed, given) => {
    for (const { db } of servers) await db.command({ delete: collection, deletes: [{ q: {}, limit: 0 }] });
    await comparison.compareAll(collection, [...insertEach(seed), ...given, readEverything]);
  });
  await fc.assert(commandProperty, runs);

  let created = 0;
  const creations = fc.array(createIndexes, { minLength: 1, maxLength: 4 });
  const indexProperty = fc.asyncProperty(documents, creations, documents, async (seed, specs, more) => {
    created += 1;
    const creating = specs.map((body) => plainCommand('createIndexes', body));
    const listing = plainCommand('listIndexes', {});
    const given = [...insertEach(seed), ...creating, listing, ...insertEach(more), readEverything];
    await comparison.compareAll(`created${created}`, given);
  });
  await fc.assert(indexProperty, indexRuns);

  const { equal, refused } = comparison.counts;
  t.true(refused < equal / 4, `${refused} refused, ${equal} equal`);
});
