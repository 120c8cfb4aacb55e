/** At the beginning of some files. It is no part of their first line. */
export const byteOrderMark = Buffer.from('\ufeff');

/** Returns where the text of a file begins. @param start the first bytes of the file */
export const findTextStart = (start: Buffer): number =>
  start.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0;
