import { Binary, Double, Long } from 'bson';
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
 * @param present makes of what is kept what the first telling is answered
 */
export function answerOnce(store: Store, body: Doc, run: () => Doc, present: (reply: Doc) => Doc): Doc {
  const { lsid, txnNumber } = body;
  if (txnNumber === undefined) return present(run());
  if (!isObject(lsid) || !(lsid.id instanceof Binary) || !(txnNumber instanceof Long)) {
    throw new MongoError('InvalidOptions', 'a transaction number needs a session');
  }
  const key = Buffer.from(lsid.id.buffer.subarray(0, lsid.id.position));
  const number = toBigInt(txnNumber);
  const saved = store.sessions.getBinary(key);
  const last = saved === undefined ? undefined : (decodeDocument(saved) as SavedAnswer);
  const lastNumber = last === undefined ? -1n : toBigInt(last.number);
  if (number < lastNumber) {
    const message = `transaction ${number} of the session is too old: ${lastNumber} has already started`;
    throw new MongoError('TransactionTooOld', message);
  }
  if (number === lastNumber && last?.reply !== undefined) return last.reply;
  const changesBefore = store.changes;
  const reply = run();
  const started = { number: txnNumber, at: new Double(Date.now()) };
  // MongoDB does not remember the answer of a write that changed nothing, so told again it is tried again.
  store.sessions.putSync(
    key,
    encodeDocument(store.changes > changesBefore ? { ...started, reply } : started),
  );
  return present(reply);
}

/** Forgets the answers to sessions that have ended. To be called inside `Store.write`. */
export function forgetOldAnswers(store: Store): void {
  for (const { key, value } of Array.from(store.sessions.getRange({}))) {
    const { at } = decodeDocument(value) as SavedAnswer;
    if (Date.now() - at.value > keptMs) store.sessions.removeSync(key);
  }
}

type SavedAnswer = { number: Long; at: Double; reply?: Doc };
