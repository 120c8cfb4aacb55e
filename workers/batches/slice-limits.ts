/** After a worker has died with a slice, this part of its lines runs at a time, so that fewer run with the one at fault. */
const partAfterDeath = 8;

/** How many of the lines run at a time. */
export const partOf = (lines: number, deaths: number): number =>
  Math.max(1, Math.ceil(lines / partAfterDeath ** deaths));

/**
 * If a call fails because of its vendor, its line runs again, after a pause. If all lines of a slice fail, the vendor
 * has failed and not they, so they run again for hours.
 */
export const retries = { ofLine: 6, ofOutage: 100, firstPauseMs: 2_000, maxPauseMs: 60_000 };

/** If fewer lines fail, they may be at fault. */
export const minOutageLines = 8;
