/**
 * What Excel expects of a CSV file that is opened by a double click: the byte order mark, without which it takes the text
 * for one of the system's old encodings, and the separator and the decimal mark of the region. In Russian these are `;`
 * and a comma, and `1.5` would become a date.
 */
const marks = {
  en: { separator: ',', decimal: '.' },
  ru: { separator: ';', decimal: ',' },
} as const satisfies Readonly<Record<string, object>>;

const byteOrderMark = '\uFEFF';
const number = /^-?\d+\.\d+$/;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

export interface ExcelOptions {
  readonly language: keyof typeof marks;
  /** Times are written in it, because spreadsheets know none. */
  readonly timeZone: string;
}

/** Rewrites CSV (RFC 4180) as it comes, a part at a time. */
class ExcelWriter {
  readonly #separator: string;
  readonly #decimal: string;
  readonly #times: Intl.DateTimeFormat;
  #field = '';
  #isQuoted = false;

  constructor({ language, timeZone }: ExcelOptions) {
    ({ separator: this.#separator, decimal: this.#decimal } = marks[language]);
    // `2026-11-29 14:30:00`, which Excel takes for a time in every language.
    this.#times = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  }

  push(text: string): string {
    const special = /[",\r\n]/g;
    let out = '';
    let from = 0;
    for (let found = special.exec(text); found !== null; found = special.exec(text)) {
      const [mark] = found;
      if (mark === '"') this.#isQuoted = !this.#isQuoted;
      if (mark === '"' || this.#isQuoted) continue;
      this.#field += text.slice(from, found.index);
      out += `${this.end()}${mark === ',' ? this.#separator : mark}`;
      from = found.index + 1;
    }
    this.#field += text.slice(from);
    return out;
  }

  /** Returns the field that has come so far. */
  end(): string {
    const field = this.#field;
    this.#field = '';
    if (number.test(field)) return field.replace('.', this.#decimal);
    // A caller may have written what looks like a time and is none.
    if (instant.test(field) && !Number.isNaN(Date.parse(field))) return this.#times.format(new Date(field));
    const isBare = field.includes(this.#separator) && !field.startsWith('"');
    return isBare ? `"${field}"` : field;
  }
}

/** Returns CSV (RFC 4180, in UTF-8) as Excel reads it in a language. */
export function toExcelCsv(
  csv: ReadableStream<Uint8Array<ArrayBuffer>>,
  options: ExcelOptions,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const writer = new ExcelWriter(options);
  const encoder = new TextEncoder();
  return csv.pipeThrough(new TextDecoderStream()).pipeThrough(
    new TransformStream<string, Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(encoder.encode(byteOrderMark)),
      transform: (text, controller) => controller.enqueue(encoder.encode(writer.push(text))),
      flush: (controller) => controller.enqueue(encoder.encode(writer.end())),
    }),
  );
}
