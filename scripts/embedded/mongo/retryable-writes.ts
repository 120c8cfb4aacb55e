import { Binary, Double, Int32, Long } from 'bson';
import type { Doc } from './bson/document.ts';
import { decodeDocument, encodeDocument, isObject } from './bson/document.ts';
import { MongoError } from './errors.ts';
import { toBigInt } from './bson/numbers.ts';
import type { Store } from './storage/store.ts';

const keptMs = 30 * 60_000;

/**
 * Runs a write once for each number that a session gives it: told again, because its answer was lost, it is answered
 * again and not done again. The answer is written with what it is about, and so survives a crash as that does.
 * To be called inside `Store.write`. One answer is kept for a session, and for as long as sessions live.
 */
export function answerOnce(store: Store, body: Doc, run: () => Doc): Doc {
  const { lsid, txnNumber } = body;
  if (txnNumber === undefined) return run();
  if (!isObject(lsid) || !(lsid.id instanceof Binary) || !(txnNumber instanceof Long)) {
    throw new MongoError('InvalidOptions', 'a transaction number needs a session');
  }
  const key = Buffer.from(lsid.id.buffer.subarray(0, lsid.id.position));
  const number = toBigInt(txnNumber);
  const statements = encodeDocument({ ids: body.stmtIds ?? body.stmtId ?? new Int32(0) }).toString('latin1');
  const saved = store.sessions.getBinary(key);
  const last = saved === undefined ? undefined : (decodeDocument(saved) as SavedAnswers);
  const lastNumber = last === undefined ? -1n : toBigInt(last.number);
  if (number < lastNumber) {
    const message = `transaction ${number} of the session is too old: ${lastNumber} has already started`;
    throw new MongoError('TransactionTooOld', message);
  }
  const answers = number === lastNumber ? (last?.answers ?? []) : [];
  const known = answers.find((answer) => answer.statements === statements);
  if (known !== undefined) return known.reply;
  const reply = run();
  const kept = {
    number: txnNumber,
    at: new Double(Date.now()),
    answers: [...answers, { statements, reply }],
  };
  store.sessions.putSync(key, encodeDocument(kept));
  return reply;
}

/** Forgets the answers to sessions that have ended. To be called inside `Store.write`. */
export function forgetOldAnswers(store: Store): void {
  for (const { key, value } of Array.from(store.sessions.getRange({}))) {
    const { at } = decodeDocument(value) as SavedAnswers;
    if (Date.now() - at.value > keptMs) store.sessions.removeSync(key);
  }
}

type SavedAnswers = { number: Long; at: Double; answers: { statements: string; reply: Doc }[] };
