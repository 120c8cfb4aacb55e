import type { Pdfium } from './pdf-text.ts';

/** Maximum size of a copy. A copy is written without compressed objects and may be larger than the original. */
const maxCopyBytes = 256 * 1024 * 1024;
/** FPDF_REMOVE_SECURITY of fpdf_save.h: rewrites everything unencrypted. */
const removeSecurityFlag = 3;
/** Index of C's null pointer in the function table. */
const nullFunction = 0;

interface WasmTable {
  set(index: number, value: unknown): void;
}

interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { readonly exports: Readonly<Record<string, unknown>> };
}

/** Node's types omit WebAssembly. */
const { WebAssembly: wasm } = globalThis as unknown as { readonly WebAssembly: Wasm };

/** `(module (type (func (param i32 i32 i32) (result i32))) (import "e" "f" (func (type 0))) (export "f" (func 0)))` */
const forwardingModule = Uint8Array.from(
  Buffer.from('0061736d0100000001080160037f7f7f017f02070101650166000007050101660000', 'hex'),
);

type SaveAsCopy = (document: number, writer: number, flags: number) => number;
type WriteBlock = (self: number, address: number, length: number) => number;

/** A table only accepts WebAssembly functions, so our function is wrapped in a module that forwards the call. */
function toWasmFunction(write: WriteBlock): unknown {
  return new wasm.Instance(new wasm.Module(forwardingModule), { e: { f: write } }).exports['f'];
}

/**
 * Lets PDFium rewrite the document, decrypted and without object streams. Returns null if the copy exceeds the limit or
 * PDFium cannot write it.
 */
export function copyPdf(pdfium: Pdfium, document: number): Buffer | null {
  const parts: Buffer[] = [];
  let length = 0;
  const write: WriteBlock = (_self, address, size) => {
    length += size;
    if (length > maxCopyBytes) return 0;
    // Copy the bytes now, because the memory is replaced when it grows.
    parts.push(Buffer.from(pdfium.HEAPU8.slice(address, address + size)));
    return 1;
  };
  // Missing from the package's types.
  const saveAsCopy = Reflect.get(pdfium, '_FPDF_SaveAsCopy') as SaveAsCopy;
  // The module's own table cannot grow, so use the entry of the null function, which is never called.
  const table = Reflect.get(pdfium.wasmExports, '__indirect_function_table') as WasmTable;
  // FPDF_FILEWRITE: a version and the function.
  const writer = pdfium.wasmExports.malloc(8);
  if (writer === 0) throw new RangeError('PDFium cannot allocate memory for a copy of the document');
  pdfium.HEAP32.set([1, nullFunction], writer / 4);
  table.set(nullFunction, toWasmFunction(write));
  try {
    return saveAsCopy(document, writer, removeSecurityFlag) === 0 ? null : Buffer.concat(parts);
  } finally {
    table.set(nullFunction, null);
    pdfium.wasmExports.free(writer);
  }
}

/**
 * Renames each `/Count` in the copy, so that the page tree no longer states its numbers of pages, and PDFium has to
 * count the pages.
 */
export function hideCounts(copy: Buffer): Buffer {
  const name = Buffer.from('/Count');
  for (let at = copy.indexOf(name); at >= 0; at = copy.indexOf(name, at + name.length)) copy[at + 1] = 0x58;
  return copy;
}
