// decision 0060
import { ConfigError } from '../runtime/config-error.ts';

/**
 * Writes succeed only once a majority of the replica set has them on disk, and reads return only what a majority has.
 * If a primary dies, all other data is lost: a new primary never had it, and the old one rolls it back when it returns.
 * MongoDB's default write concern is weaker if a member is an arbiter, and its default for reads is always weaker.
 *
 * - After a write, the entry is trimmed from the Redis stream, so MongoDB must not lose it.
 * - After a read, codes are credited and claims settled, so no credit outlives the claim that it belongs to.
 *
 * The timeout applies to a replica set that has lost its majority, or whose members are far behind. The outcome of the
 * write is then unknown (error 64), and the write is repeated. The timeout is shorter than `socketTimeoutMS`, so that
 * MongoDB reports it and the connection stays open. It is longer than ten seconds, because at a lag of ten seconds
 * MongoDB starts to slow down writers. With a shorter timeout, a ledger that writes continuously would abandon every
 * batch although the members keep up.
 */
export const durability = {
  writeConcern: { w: 'majority', wtimeoutMS: 15_000 },
  readConcernLevel: 'majority',
} as const;

/**
 * For the few reads that must see the newest write of any process. With `majority`, a member that was just elected may
 * still return older data, and so may one that does not know yet that it is no longer primary. With `linearizable`,
 * MongoDB contacts the majority before it responds, so this needs a timeout. Only for reads of one document by its id.
 */
export const linearizableRead = { readConcern: { level: 'linearizable' }, maxTimeMS: 2_000 } as const;

/** Allowed values of URL options, compared in lower case. Any other value could lose ledger entries. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  w: ['majority'],
  journal: ['true'],
  j: ['true'],
  readconcernlevel: ['majority'],
  readpreference: ['primary'],
};

/**
 * @throws ConfigError if a URL configures writes or reads that are rolled back when a server dies, or sets the write
 * timeout under its old name, which the driver prefers over our setting
 */
export function checkDurability(url: string): void {
  const from = url.indexOf('?');
  if (from < 0) return;
  for (const [name, value] of new URLSearchParams(url.slice(from))) {
    if (name.toLowerCase() === 'wtimeout') {
      throw new ConfigError(
        `MONGODB_URL has ${name}=${value}, but writes must wait 15 s for a majority: remove it. With a shorter timeout the ` +
          'ledger abandons batches that slow members would still write.',
      );
    }
    const values = allowed[name.toLowerCase()];
    if (values === undefined || values.includes(value.toLowerCase())) continue;
    throw new ConfigError(
      `MONGODB_URL has ${name}=${value}, with which MongoDB can lose charges when a server dies: ` +
        `remove it, or use ${name}=${values[0]}.`,
    );
  }
}
