import { ok, problem, warning, type Finding } from './finding.ts';

/** Deadlines of requests pass between machines; leases and windows of limits are longer. */
const noticeableMs = 1_000;
const harmfulMs = 10_000;

const advice = 'Let all machines set their clocks by NTP (chrony, systemd-timesyncd).';

/** A server's time, and when it was asked and replied by our own clock (Unix time, ms). */
export interface ClockReading {
  readonly serverMs: number;
  readonly askedAtMs: number;
  readonly repliedAtMs: number;
}

/** Reads a server's clock. */
export async function readClock(read: () => Promise<number>): Promise<ClockReading> {
  const askedAtMs = Date.now();
  const serverMs = await read();
  return { serverMs, askedAtMs, repliedAtMs: Date.now() };
}

/** Compares a server's clock with ours. What the network may have taken is not counted as a difference. */
export function checkClock(server: string, { serverMs, askedAtMs, repliedAtMs }: ClockReading): Finding {
  const offsetMs =
    serverMs > repliedAtMs ? serverMs - repliedAtMs : serverMs < askedAtMs ? serverMs - askedAtMs : 0;
  const check = `clock of ${server}`;
  const size = Math.abs(offsetMs);
  if (size < noticeableMs) return ok(check, `within ${noticeableMs / 1_000} s of this machine's`);
  const found = `${(size / 1_000).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} this machine's`;
  return size < harmfulMs
    ? warning(check, found, advice)
    : problem(check, `${found}: deadlines and sessions end at the wrong time`, advice);
}
