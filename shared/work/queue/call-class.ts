// decision 0086
/**
 * Who waits for a call: a client on a connection, nobody for a durable job, and nobody for lines of a batch file, which
 * have the most time. In the order of precedence: calls of a class get a slot only while none of an earlier class waits.
 */
export type CallClass = 'interactive' | 'job' | 'batch';

export const callClasses: readonly CallClass[] = ['interactive', 'job', 'batch'];

/** The classes whose waiting calls go before those of this class. */
export function classesBefore(callClass: CallClass): readonly CallClass[] {
  return callClasses.slice(0, callClasses.indexOf(callClass));
}
