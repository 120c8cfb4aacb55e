/**
 * Another reader has applied entries since this one last read. Entries that were not written must not be trimmed: the
 * batch is read again, and entries that are still new are applied.
 */
export class LedgerConflict extends Error {
  override readonly name = 'LedgerConflict';
}
