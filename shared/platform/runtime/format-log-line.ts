import { toPrintable } from './to-printable.ts';

/** Wraps text in a terminal escape sequence, or leaves it unchanged if there is no terminal. */
export type Paint = (style: 'dim' | 'bold' | 'red' | 'yellow' | 'green' | 'cyan', text: string) => string;

const codes = { dim: 2, bold: 1, red: 31, yellow: 33, green: 32, cyan: 36 } as const;

export function createPaint(isTerminal: boolean): Paint {
  return (style, text) => (isTerminal ? `\u001B[${codes[style]}m${text}\u001B[0m` : text);
}

/** The `msg` of the api's access log line. */
export const accessMessage = 'request';

const shownLevels = ['info', 'warn', 'error', 'fatal'];
/** Fields that are shown elsewhere in the line or are useless to a reader. */
const hiddenFields = ['level', 'time', 'role', 'pid', 'hostname', 'msg', 'err'];
const partWidth = 8;

export function formatPartName(name: string): string {
  return name.padEnd(partWidth);
}

export function formatTime(date: Date): string {
  return date.toTimeString().slice(0, 8);
}

export interface LogLineOptions {
  /** Whether to show all levels, request ids and stack traces. For output that no log file completes. */
  readonly isComplete?: boolean;
}

/**
 * Formats a log line of a part for a terminal. Returns null for lines that the console does not show. A line that is
 * not our JSON is shown unchanged.
 */
export function formatLogLine(
  part: string,
  line: string,
  paint: Paint,
  { isComplete = false }: LogLineOptions = {},
): string | null {
  const entry = parseEntry(line);
  if (entry === null)
    return line.trim() === '' ? null : `${prefix(part, new Date(), paint)} ${line.trimEnd()}`;
  const level = String(entry['level']);
  if (!isComplete && !shownLevels.includes(level)) return null;
  const time = new Date(typeof entry['time'] === 'string' ? entry['time'] : Date.now());
  const text = isAccess(entry)
    ? formatAccess(entry, paint, isComplete)
    : formatEntry(entry, level, paint, isComplete);
  return `${prefix(part, time, paint)} ${text}`;
}

type Entry = Record<string, unknown>;

function parseEntry(line: string): Entry | null {
  if (!line.startsWith('{')) return null;
  try {
    const value = JSON.parse(line) as Entry;
    return typeof value['level'] === 'string' ? value : null;
  } catch {
    // Text from a library, which is shown unchanged.
    return null;
  }
}

function prefix(part: string, time: Date, paint: Paint): string {
  return `${paint('dim', formatTime(time))} ${paint('cyan', formatPartName(part))}`;
}

function isAccess(entry: Entry): boolean {
  return entry['msg'] === accessMessage && 'path' in entry && typeof entry['status'] === 'number';
}

/** For a failed request, also shows what was wrong, where, and the id by which its other lines can be found. */
function formatAccess(
  { method, path, status, durationMs, code, param, reason, requestId, model, cost }: Entry,
  paint: Paint,
  hasId: boolean,
): string {
  // A stream that ended with an error had started with 200.
  const isBroken = Number(status) >= 500 || (Number(status) < 400 && code !== undefined);
  const style = isBroken ? 'red' : Number(status) >= 400 ? 'yellow' : 'green';
  const isFailed = style !== 'green';
  const words = [
    paint(style, String(status)),
    // Input that is not an HTTP request has neither method nor path.
    typeof method === 'string' ? toPrintable(method) : '-',
    typeof path === 'string' ? toPrintable(path) : '-',
    ...(typeof code === 'string' ? [paint(style, code)] : []),
    ...(typeof param === 'string' ? [toPrintable(param)] : []),
    ...(typeof reason === 'string' ? [toPrintable(reason)] : []),
    ...(typeof model === 'string' ? [toPrintable(model)] : []),
    ...(typeof cost === 'number' && cost > 0 ? [`${cost} RUB`] : []),
    ...(typeof durationMs === 'number' ? [paint('dim', `${Math.round(durationMs)} ms`)] : []),
    ...((isFailed || hasId) && typeof requestId === 'string' ? [paint('dim', requestId)] : []),
  ];
  return words.join(' ');
}

/** The positions and texts in a catalog message are also in its fields. */
function isInMessage(name: string, value: unknown, entry: Entry): boolean {
  return ['line', 'column', 'message'].includes(name) && String(entry['msg']).includes(String(value));
}

const levelStyles: Readonly<Record<string, Parameters<Paint>[0]>> = {
  trace: 'dim',
  debug: 'dim',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};

function formatEntry(entry: Entry, level: string, paint: Paint, isComplete: boolean): string {
  const style = levelStyles[level];
  // A line of pino may lack a message.
  const text = typeof entry['msg'] === 'string' ? toPrintable(entry['msg']) : '';
  const message = style === undefined ? text : paint(style, `${level}: ${text}`);
  const { message: error, stack } = (entry['err'] ?? {}) as { message?: unknown; stack?: unknown };
  const fields = Object.entries(entry)
    // Skip empty lists and fields that the message already contains.
    .filter(
      ([name, value]) => !(Array.isArray(value) && value.length === 0) && !isInMessage(name, value, entry),
    )
    .filter(([name]) => !hiddenFields.includes(name) && (isComplete || name !== 'requestId'))
    .map(
      ([name, value]) => `${name}=${toPrintable(typeof value === 'string' ? value : JSON.stringify(value))}`,
    );
  const reason = typeof error === 'string' && error !== '' ? [`(${toPrintable(error)})`] : [];
  const suffix = [...reason, ...fields].join(' ');
  const first = suffix === '' ? message : `${message} ${paint('dim', suffix)}`;
  return isComplete && typeof stack === 'string' ? `${first}${formatStack(stack, paint)}` : first;
}

/** Returns the frames of a stack trace and of its causes, each on an indented line. The message is in the line itself. */
function formatStack(stack: string, paint: Paint): string {
  return stack
    .split('\n')
    .map((frame) => frame.trim())
    .filter((frame) => /^(?:at|caused by:) /.test(frame))
    .map((frame) => `\n${paint('dim', `    ${toPrintable(frame)}`)}`)
    .join('');
}
