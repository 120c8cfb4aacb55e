import { ConfigError } from '../runtime/config-error.ts';

/**
 * Writes count only once a majority of the replica set has them on disk, and reads return only what a majority has.
 * If a primary dies, everything else dies with it: a new primary never had it, and the old one rolls it back when it
 * returns. MongoDB's default write concern is weaker if a member is an arbiter, and its default for reads is always
 * weaker.
 *
 * - Redis's stream is trimmed because of writes, so a trimmed entry can no longer be lost.
 * - Codes are credited, and claims settled, because of reads, so no credit outlives the claim that it belongs to.
 *
 * The timeout is for a set that has lost its majority, or whose members are far behind: the write is then in doubt
 * (error 64), and is repeated. It is shorter than `socketTimeoutMS`, so that MongoDB itself reports it and the
 * connection stays open. It is longer than the ten seconds at which MongoDB starts to slow writers down for members
 * that are behind: with a shorter one, a ledger that writes without pause would give up every batch although the
 * members follow.
 */
export const durability = {
  writeConcern: { w: 'majority', wtimeoutMS: 15_000 },
  readConcernLevel: 'majority',
} as const;

/**
 * For the few reads that must also see the newest write of any process. A member that was just elected may still
 * answer `majority` with older data, and one that was voted out may not know that yet. MongoDB asks the majority
 * before it answers, so this needs a timeout. Reads one document, by its id.
 */
export const newestRead = { readConcern: { level: 'linearizable' }, maxTimeMS: 2_000 } as const;

/** Allowed values of URL options. Any other value could lose ledger entries. In lower case, as in URLs. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  w: ['majority'],
  journal: ['true'],
  j: ['true'],
  readconcernlevel: ['majority'],
  readpreference: ['primary'],
};

/**
 * @throws ConfigError if a URL asks for writes or reads that a dying server can roll back, or sets the write timeout
 * under its old name, which the driver prefers over ours
 */
export function checkDurability(url: string): void {
  const from = url.indexOf('?');
  if (from < 0) return;
  for (const [name, value] of new URLSearchParams(url.slice(from))) {
    if (name.toLowerCase() === 'wtimeout') {
      throw new ConfigError(
        `MONGODB_URL has ${name}=${value}, but writes must wait 15 s for a majority: leave it out. With a shorter time the ` +
          'ledger gives up batches that members who are behind would still take.',
      );
    }
    const values = allowed[name.toLowerCase()];
    if (values === undefined || values.includes(value.toLowerCase())) continue;
    throw new ConfigError(
      `MONGODB_URL has ${name}=${value}, with which MongoDB can lose charges when a server dies: ` +
        `leave it out, or write ${name}=${values[0]}.`,
    );
  }
}
