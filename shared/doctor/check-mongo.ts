import type { Database } from '../platform/storage/mongo-client.ts';
import { checkClock } from './check-clock.ts';
import { ok, problem, warning, type Finding } from './finding.ts';
import { isOlder } from './is-older.ts';

const minVersion = '6.0';

/** The reply to `hello` of a member of a replica set. */
interface Hello {
  readonly setName?: string;
  readonly hosts?: readonly string[];
  readonly arbiters?: readonly string[];
  readonly localTime?: Date;
}

/** Checks MongoDB: version, replica set, clock, and that it can be read as accounts are. */
export async function checkMongo(db: Database): Promise<Finding[]> {
  const { version } = (await db.command({ buildInfo: 1 })) as unknown as { version: string };
  const askedAtMs = Date.now();
  const hello = (await db.command({ hello: 1 })) as unknown as Hello;
  const repliedAtMs = Date.now();
  const found = `MongoDB ${version}`;
  const findings = [
    isOlder(version, minVersion)
      ? problem('mongodb', found, `Install MongoDB ${minVersion} or later.`)
      : ok('mongodb', found),
    checkReplicaSet(hello),
  ];
  if (hello.localTime !== undefined)
    findings.push(checkClock('mongodb', { serverMs: hello.localTime.getTime(), askedAtMs, repliedAtMs }));
  if (hello.setName !== undefined) await db.collection('accounts').findOne({}, { projection: { _id: 1 } });
  return findings;
}

function checkReplicaSet({ setName, hosts = [], arbiters = [] }: Hello): Finding {
  const check = 'mongodb replica set';
  if (setName === undefined)
    return problem(
      check,
      'the server is not a member of a replica set, so accounts cannot be loaded from it',
      'Start it with --replSet rs0, run rs.initiate() once, and add replicaSet=rs0 to MONGODB_URL.',
    );
  const found = `${setName}, ${hosts.length} ${hosts.length === 1 ? 'member' : 'members'} with data`;
  return arbiters.length > 0
    ? warning(
        check,
        `${found}, and an arbiter: nothing is written while one member with data is down`,
        'Replace the arbiter with a member that has data.',
      )
    : ok(check, found);
}
