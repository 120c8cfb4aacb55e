import type { ConditionName } from '../../../shared/contract/condition-names.ts';
import type { Concern } from './concerns.ts';

/** The body of an alert's webhook. Clients outside rely on it. */
export interface AlertBody {
  readonly type: 'alert.begin' | 'alert.end';
  readonly condition: ConditionName;
  /** When the condition began, in RFC 3339 format. */
  readonly since: string;
  readonly text: string;
}

export interface Alert {
  readonly body: AlertBody;
  /** One line, for a mail. */
  readonly subject: string;
}

interface Texts {
  /** What is wrong, in a few words. */
  readonly title: (concern: About) => string;
  /** What it means for callers, what to do, and where to look. */
  readonly advice: string | ((concern: About) => string);
  /** What is so again, in a few words. */
  readonly end: string | ((key: string) => string);
}

type About = Pick<Concern, 'subjects' | 'key' | 'fields'>;

/** `a`, `a and b`, `a, b and c`. */
function enumerate(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}

const capitalize = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}`;

const plain = (text: string) => (): string => text;

const queues = (subjects: readonly string[]): string =>
  `the queue${subjects.length === 1 ? '' : 's'} ${enumerate(subjects)}`;

const texts: Readonly<Record<ConditionName, Texts>> = {
  redis_unreachable: {
    title: plain('Redis does not respond'),
    advice:
      'No request is accepted: callers get a 503 and are not charged. Check that Redis runs, that its disk is not full, and ' +
      'that REDIS_URL leads to it from the api processes. The gateway recovers by itself when Redis is back. This alert ' +
      'comes from one api process; the others send their own.',
    end: 'Redis responds again',
  },
  redis_memory: {
    title: plain('Redis has no memory left'),
    advice:
      'Once its memory is full, Redis refuses writes, and callers get a 503. Raise maxmemory, or find what uses the ' +
      'memory: "admin queue status" shows waiting work, and the metrics of the ledger show what is not written yet.',
    end: 'Redis has memory again',
  },
  redis_evicts: {
    title: plain('Redis may delete keys'),
    advice:
      'When its memory is full, this Redis deletes balances, reservations and jobs, so money and work can be lost. Set ' +
      'maxmemory-policy to noeviction.',
    end: 'Redis no longer deletes keys',
  },
  no_workers: {
    title: ({ subjects }) => `no worker for ${queues(subjects)}`,
    advice:
      'Callers of its models get a 503, and jobs wait. If Redis has no memory left, that is the reason: see that alert ' +
      'first. Otherwise start a worker (npm run worker), and end those that hang: their /livez does not answer. "admin queue ' +
      'status" shows how much waits.',
    end: 'each queue has a worker again',
  },
  worker_faults: {
    title: ({ subjects }) => `workers for ${queues(subjects)} report failures`,
    advice:
      'A part of a worker fails until somebody fixes it, such as a missing permission or a ledger entry that cannot be ' +
      'read. Look for "fails until this is fixed" in the logs of the workers: the line says what to do.',
    end: 'no worker reports failures any more',
  },
  ledger_behind: {
    title: plain('the ledger is not written to MongoDB'),
    advice:
      'Requests are served, and balances are right, but the history and the statistics lag. If it goes on, the ledger in ' +
      'Redis becomes full, and callers get a 503. Check that MongoDB accepts writes and that workers run; their logs say ' +
      'why the ledger pauses.',
    end: 'the ledger is written to MongoDB again',
  },
  ledger_dead_entries: {
    title: plain('the ledger has entries that could not be read'),
    advice:
      'What they charged or added may be in no balance. /admin?view=ledger and "admin ledger dead" show each with its account ' +
      'and amount: correct the account of each entry that is not counted, and discard the entry. Do not credit those that are ' +
      'credited again by themselves (redeemed codes and sign-up grants).',
    end: 'the ledger has no entries any more that could not be read',
  },
  mongodb_unreachable: {
    title: plain('MongoDB does not respond'),
    advice:
      'Callers with recently used keys are served; other keys, histories and the account area get a 503. Check that ' +
      'MongoDB runs and has a primary, and that MONGODB_URL leads to it from the api processes.',
    end: 'MongoDB responds again',
  },
  storage_unreachable: {
    title: plain('the object store does not respond'),
    advice:
      'Links to images, uploads and batches get a 503; everything else works. Check that the server of S3_ENDPOINT runs, ' +
      'that the bucket S3_BUCKET exists, and that the credentials are right.',
    end: 'the object store responds again',
  },
  upstream_key_refused: {
    title: ({ key }) => `a key is refused by ${splitKey(key).upstream}`,
    advice: describeRefusedKey,
    end: (key) => {
      const { upstream, fingerprint } = splitKey(key);
      return `the key ${fingerprint} is no longer refused by ${upstream}`;
    },
  },
};

/** The key of this problem names the upstream and the fingerprint of its key. */
function splitKey(key: string): { readonly upstream: string; readonly fingerprint: string } {
  const at = key.lastIndexOf(' ');
  return { upstream: key.slice(0, at), fingerprint: key.slice(at + 1) };
}

function describeRefusedKey({ key, fields }: About): string {
  const { upstream, fingerprint } = splitKey(key);
  const { reason, usableKeys, keys, deadModels } = fields;
  const effect =
    deadModels === undefined
      ? 'Other keys or routes take its calls.'
      : `Nothing else serves ${deadModels}: callers get a 502.`;
  return (
    `It is the key ${fingerprint}, ${reason}. ${upstream} has ${usableKeys} of ${keys} keys left. ${effect} Check whether the ` +
    'key is valid, has credit and may use the model. It is tried again every ten minutes; after you have fixed it, ' +
    `"admin upstream reset ${upstream}" uses it at once.`
  );
}

const where = 'The table of conditions in docs/operations.md says more.';

/** What is wrong, in a few words, and what it means and what to do. Pure. */
export function describeConcern(concern: About & Pick<Concern, 'name'>): {
  readonly title: string;
  readonly advice: string;
} {
  const { title, advice } = texts[concern.name];
  return { title: title(concern), advice: typeof advice === 'string' ? advice : advice(concern) };
}

/** The alert that a condition, or one of its problems, has begun. Pure. */
export function describeBegin(concern: About & Pick<Concern, 'name'>, sinceMs: number): Alert {
  const { title: what, advice } = describeConcern(concern);
  const since = new Date(sinceMs).toISOString();
  return {
    subject: what,
    body: {
      type: 'alert.begin',
      condition: concern.name,
      since,
      text: `${capitalize(what)}, since ${since}. ${advice} ${where}`,
    },
  };
}

/** The alert that a condition, or one of its problems, has ended. Pure. */
export function describeEnd({ name, key }: Pick<Concern, 'name' | 'key'>, sinceMs: number): Alert {
  const since = new Date(sinceMs).toISOString();
  const { end } = texts[name];
  const what = typeof end === 'string' ? end : end(key);
  return {
    subject: `ended: ${what}`,
    body: {
      type: 'alert.end',
      condition: name,
      since,
      text: `${capitalize(what)}. The problem began at ${since}.`,
    },
  };
}
