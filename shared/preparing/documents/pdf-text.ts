import { PDFiumModule } from '@hyzyla/pdfium';
import type { DocumentResult, DocumentFault, DocumentRequest } from './file-content.ts';
import { copyPdf, hideCounts } from './pdf-copy.ts';

export type Pdfium = Awaited<ReturnType<typeof PDFiumModule>>;

const wasmPageBytes = 64 * 1024;
/** PDFium's error code (fpdfview.h) for a document that requires a password. */
const passwordError = 4;

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** Node's types omit WebAssembly. */
const { WebAssembly: wasm } = globalThis as unknown as {
  readonly WebAssembly: { readonly Memory: { readonly prototype: WasmMemory } };
};

/** Limits WebAssembly's memory, which the heap limit does not cover. */
export function boundWasmMemory(maxBytes: number): void {
  const memory = wasm.Memory.prototype;
  const grow: WasmMemory['grow'] = Reflect.get(memory, 'grow');
  memory.grow = function growBounded(this: WasmMemory, pages: number): number {
    if (this.buffer.byteLength + pages * wasmPageBytes > maxBytes) {
      throw new RangeError(`a document takes more than ${maxBytes} bytes of memory`);
    }
    return grow.call(this, pages);
  };
}

export async function loadPdfium(): Promise<Pdfium> {
  const pdfium = await PDFiumModule({});
  pdfium._FPDF_InitLibraryWithConfig({
    version: 2,
    m_pIsolate: null,
    m_pUserFontPaths: null,
    m_v8EmbedderSlot: 0,
    m_pPlatform: null,
  });
  return pdfium;
}

type PdfLimits = Pick<DocumentRequest, 'maxCharacters' | 'maxPages'>;
interface Fault {
  readonly fault: DocumentFault;
}

/**
 * Reads all text of a PDF, including text that is invisible or outside the page, because vendors read it too. Throws if
 * PDFium runs out of memory; PDFium cannot be used after that.
 *
 * PDFium trusts the number of pages that a document states, while other readers follow the page tree. If the two
 * numbers differ, the pages of the tree are read.
 */
export function readPdf(pdfium: Pdfium, { bytes, ...limits }: Omit<DocumentRequest, 'kind'>): DocumentResult {
  return withDocument<DocumentResult>(pdfium, bytes, (document) => {
    const statedPages = pdfium._FPDF_GetPageCount(document);
    if (statedPages > limits.maxPages) return { fault: 'too_long' };
    const copy = copyPdf(pdfium, document);
    if (copy === null) return { fault: 'unreadable' };
    const treeResult = withDocument<DocumentResult | true>(pdfium, hideCounts(copy), (tree) =>
      pdfium._FPDF_GetPageCount(tree) === statedPages ? true : readPages(pdfium, tree, limits),
    );
    return treeResult === true ? readPages(pdfium, document, limits) : treeResult;
  });
}

function withDocument<T>(pdfium: Pdfium, bytes: Uint8Array, use: (document: number) => T): T | Fault {
  const address = pdfium.wasmExports.malloc(bytes.length);
  if (address === 0) throw new RangeError('PDFium cannot allocate memory for the document');
  pdfium.HEAPU8.set(bytes, address);
  const document = pdfium._FPDF_LoadMemDocument(address, bytes.length, 0);
  try {
    if (document !== 0) return use(document);
    return { fault: pdfium._FPDF_GetLastError() === passwordError ? 'protected' : 'unreadable' };
  } finally {
    if (document !== 0) pdfium._FPDF_CloseDocument(document);
    pdfium.wasmExports.free(address);
  }
}

function readPages(pdfium: Pdfium, document: number, { maxCharacters, maxPages }: PdfLimits): DocumentResult {
  const pages = pdfium._FPDF_GetPageCount(document);
  if (pages > maxPages) return { fault: 'too_long' };
  const texts: string[] = [];
  let characters = 0;
  for (let index = 0; index < pages; index += 1) {
    const text = readPage(pdfium, document, index);
    if (text === null) return { fault: 'unreadable' };
    characters += text.length;
    if (characters > maxCharacters) return { fault: 'too_long' };
    texts.push(text);
  }
  return { texts, pages };
}

function readPage(pdfium: Pdfium, document: number, index: number): string | null {
  const page = pdfium._FPDF_LoadPage(document, index);
  if (page === 0) return null;
  try {
    const text = pdfium._FPDFText_LoadPage(page);
    if (text === 0) return null;
    try {
      return readCharacters(pdfium, text);
    } finally {
      pdfium._FPDFText_ClosePage(text);
    }
  } finally {
    pdfium._FPDF_ClosePage(page);
  }
}

function readCharacters(pdfium: Pdfium, text: number): string {
  const count = pdfium._FPDFText_CountChars(text);
  if (count <= 0) return '';
  // UTF-16 with a terminating zero.
  const address = pdfium.wasmExports.malloc((count + 1) * 2);
  if (address === 0) throw new RangeError('PDFium cannot allocate memory for the text of a page');
  try {
    const length = pdfium._FPDFText_GetText(text, 0, count, address);
    // Create the view only now, because the memory gets a new buffer when it grows.
    const bytes = Buffer.from(pdfium.HEAPU8.buffer, address, Math.max(0, length - 1) * 2);
    return bytes.toString('utf16le');
  } finally {
    pdfium.wasmExports.free(address);
  }
}
