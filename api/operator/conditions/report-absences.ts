import type { Absence, AbsenceReport } from '../../requests/replies/worker-absence.ts';
import type { ConditionBoard } from './condition-board.ts';

/** Notes queues without a worker on the board. */
export function reportAbsences(board: ConditionBoard): AbsenceReport {
  return {
    began(queue, absence) {
      const { unservedSeconds, refused } = toFields(absence);
      board.begin(
        { name: 'no_workers', key: queue },
        {
          subject: queue,
          sinceMs: Math.round(Date.now() - absence.unservedMs),
          labels: { queue },
          fields: { unservedSeconds, waiting: absence.waiting, refused },
        },
      );
    },
    ended(queue, absence, isServed) {
      const id = { name: 'no_workers', key: queue } as const;
      if (isServed) board.end(id, toFields(absence));
      else board.end(id, {}, 'queue without a worker is no longer used');
    },
    known: () => board.settle('no_workers'),
  };
}

/** For systems that start workers when there is work: a queue without a worker is no problem. */
export function ignoreAbsences(board: ConditionBoard): AbsenceReport {
  return { began: () => undefined, ended: () => undefined, known: () => board.settle('no_workers') };
}

const toFields = ({ unservedMs, refused }: Absence): { unservedSeconds: number; refused: number } => ({
  unservedSeconds: Math.round(unservedMs / 1_000),
  refused,
});
