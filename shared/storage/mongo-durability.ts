import { ConfigError } from '../runtime/config-error.ts';

/**
 * What is written counts only once most members of the replica set have it on disk, and what is read is something that most
 * members have. A primary that dies takes everything else with it: a new one has never heard of it, and the old one rolls it
 * back when it returns. MongoDB's own default is weaker where a member is an arbiter, and reads are weaker everywhere.
 *
 * - Redis's stream is trimmed on the strength of writes, so an entry that is trimmed can no longer be lost.
 * - Codes are credited, and claims settled, on the strength of reads, so no credit outlives the claim that it belongs to.
 *
 * The bound is for a set that has lost its majority, or whose members are far behind: the write is then in doubt (error 64),
 * and is repeated. It is shorter than `socketTimeoutMS`, so that MongoDB itself says so and the connection stays open, and
 * longer than the ten seconds at which MongoDB begins to slow writers down for members that are behind: with a shorter one a
 * ledger that writes without pause would give up each batch although the members follow.
 */
export const durability = {
  writeConcern: { w: 'majority', wtimeoutMS: 15_000 },
  readConcernLevel: 'majority',
} as const;

/**
 * For the few reads that must also see the newest of what was written, whoever wrote it: a member that was elected a moment
 * ago may still answer `majority` with what it knew before, and one that was voted out may not know of it yet. MongoDB asks
 * the majority before it answers, so it needs a bound of its own. One document, by its id.
 */
export const newestRead = { readConcern: { level: 'linearizable' }, maxTimeMS: 2_000 } as const;

/** What each option of a URL may be: any other value makes books that can lose entries. In lower case, as in URLs. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  w: ['majority'],
  journal: ['true'],
  j: ['true'],
  readconcernlevel: ['majority'],
  readpreference: ['primary'],
};

/**
 * @throws ConfigError where a URL asks for writes or reads that a dying server can take back, or for another bound of writes
 *   under its old name, which the driver lets win over ours
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
