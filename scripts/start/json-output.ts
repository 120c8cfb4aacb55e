import { createLogger, writeLogLines } from '../../shared/platform/runtime/logger.ts';
import { ConsoleOutput } from './console-output.ts';
import { LineSplitter } from './line-splitter.ts';

/**
 * The output of `npm start` for programs: all lines of all parts unchanged, and the messages of `npm start` itself as
 * JSON lines.
 */
export class JsonOutput extends ConsoleOutput {
  readonly #log = createLogger('start', 'info', 'json');
  readonly #splitters = new Map<string, LineSplitter>();

  constructor() {
    super({ write: () => undefined });
  }

  /** Only the first line. The others of the welcome are for people, and contain the key of the demo account. */
  override print(text: string): void {
    const [first] = text.trim().split('\n', 1);
    if (first !== '') this.#log.info(first);
  }

  override printPart(part: string, what: string, tookMs: number | null): void {
    this.#log.info({ part, ...(tookMs === null ? {} : { tookMs: Math.round(tookMs) }) }, what);
  }

  override printEvent(part: string, text: string, style: 'yellow' | 'green'): void {
    this.#log[style === 'yellow' ? 'warn' : 'info']({ part }, text);
  }

  override printLog(part: string, chunk: Buffer): void {
    let splitter = this.#splitters.get(part);
    if (splitter === undefined) {
      splitter = new LineSplitter((lines) => this.#write(part, lines));
      this.#splitters.set(part, splitter);
    }
    splitter.add(chunk);
  }

  #write(part: string, lines: string): void {
    for (const line of lines.split('\n')) {
      if (line.startsWith('{')) writeLogLines(`${line}\n`);
      // Text from a library.
      else if (line.trim() !== '') this.#log.info({ part }, line.trimEnd());
    }
  }
}
