import { deflateSync } from 'node:zlib';

export interface PdfOptions {
  /** How many times each page shows its text, each time on a new line, even beyond the edge of the page. */
  readonly repeat?: number;
  /** Makes every page paint the same form (an XObject) with this text, this many times. */
  readonly form?: { readonly text: string; readonly paints: number };
  /** The page count that the document declares, if it differs from the real one. */
  readonly count?: number;
  /** How many times each page is listed in the page tree. */
  readonly listed?: number;
  /** An extra entry in the trailer, for example for encryption. */
  readonly trailer?: string;
}

/** A PDF with one page for each text. */
export function makePdf(pages: readonly string[], options: PdfOptions = {}): Buffer {
  const { repeat = 1, form, count, listed = 1, trailer = '' } = options;
  const objects: Buffer[] = [];
  const add = (text: string | Buffer): number => objects.push(Buffer.from(text));
  const addStream = (dictionary: string, content: string): number => {
    const packed = deflateSync(Buffer.from(content, 'latin1'));
    const head = `<< ${dictionary} /Length ${packed.length} /Filter /FlateDecode >>\nstream\n`;
    return add(Buffer.concat([Buffer.from(head), packed, Buffer.from('\nendstream')]));
  };
  const show = (text: string): string =>
    `BT /F1 12 Tf 72 720 Td ${`(${text}) Tj 0 -14 Td `.repeat(repeat)} ET`;
  add('<< /Type /Catalog /Pages 2 0 R >>');
  add('');
  add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>');
  const fonts = '/Font << /F1 3 0 R >>';
  const formId =
    form === undefined
      ? null
      : addStream(
          `/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << ${fonts} >>`,
          show(form.text),
        );
  const kids = pages.map((text) => {
    const paints = formId === null ? '' : '/X1 Do '.repeat(form!.paints);
    const content = addStream('', `${show(text)} ${paints}`);
    const forms = formId === null ? '' : `/XObject << /X1 ${formId} 0 R >>`;
    return add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << ${fonts} ${forms} >> /Contents ${content} 0 R >>`,
    );
  });
  objects[1] = Buffer.from(
    `<< /Type /Pages /Kids [${kids.map((id) => `${id} 0 R `.repeat(listed)).join('')}] /Count ${count ?? pages.length * listed} >>`,
  );
  return assemble(objects, trailer);
}

/** A PDF with blank pages, which does not contain the word `stream`. */
export function makeBlankPdf(pages: number): Buffer {
  const kids = Array.from({ length: pages }, (_, index) => `${index + 3} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /MediaBox [0 0 612 792] /Kids [${kids}] /Count ${pages} >>`,
    ...Array.from({ length: pages }, () => '<< /Type /Page /Parent 2 0 R >>'),
  ];
  return assemble(objects.map((object) => Buffer.from(object)));
}

/** A PDF whose pages share one content stream of this many megabytes, without any text: reading it takes minutes. */
export function makeSlowPdf(pages: number, megabytes: number): Buffer {
  const operator = '1 0 0 1 0 0 cm\n';
  const content = deflateSync(Buffer.from(operator.repeat(Math.floor((megabytes * 1e6) / operator.length))));
  const kids = Array.from({ length: pages }, (_, index) => `${index + 4} 0 R`).join(' ');
  const objects = [
    Buffer.from('<< /Type /Catalog /Pages 2 0 R >>'),
    Buffer.from(`<< /Type /Pages /MediaBox [0 0 612 792] /Kids [${kids}] /Count ${pages} >>`),
    Buffer.concat([
      Buffer.from(`<< /Length ${content.length} /Filter /FlateDecode >>\nstream\n`),
      content,
      Buffer.from('\nendstream'),
    ]),
    ...Array.from({ length: pages }, () => Buffer.from('<< /Type /Page /Parent 2 0 R /Contents 3 0 R >>')),
  ];
  return assemble(objects);
}

function assemble(objects: readonly Buffer[], trailer = ''): Buffer {
  const parts = [Buffer.from('%PDF-1.7\n')];
  const offsets: number[] = [];
  let offset = parts[0]!.length;
  for (const [index, object] of objects.entries()) {
    const part = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), object, Buffer.from('\nendobj\n')]);
    offsets.push(offset);
    offset += part.length;
    parts.push(part);
  }
  const rows = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  parts.push(
    Buffer.from(
      `xref\n0 ${size}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${offset}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}

export function toDataUri(bytes: Buffer, mediaType = 'application/pdf'): string {
  return `data:${mediaType};base64,${bytes.toString('base64')}`;
}
