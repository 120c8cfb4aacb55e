import type { ImageTokens } from '../../contract/image-usage.ts';

/** The header in a `result` frame of an embedding or image request. Sent as JSON, followed by raw bytes. */
export interface ResultHeader {
  /** Unix seconds. */
  readonly created: number;
  /** Nano-roubles, as text. */
  readonly costNano: string;
  readonly free: boolean;
  readonly durationMs: number;
}

export interface EmbeddingResultHeader extends ResultHeader {
  readonly promptTokens: number;
  readonly dimensions: number;
}

export interface ImageResultHeader extends ResultHeader {
  readonly tokens: ImageTokens;
  readonly images: readonly {
    readonly revisedPrompt: string | null;
    /** Its key in the object store; null if its bytes follow the header. */
    readonly objectKey: string | null;
    readonly byteLength: number;
  }[];
}

/** Encodes header length u32 · header · body, in parts that can be sent one after another. */
export function encodeResult(header: ResultHeader, body: readonly Buffer[]): Buffer[] {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32LE(json.length, 0);
  return [length, json, ...body];
}

export function decodeResult(
  bytes: Buffer,
  kind: 'embedding',
): { header: EmbeddingResultHeader; body: Buffer };
export function decodeResult(bytes: Buffer, kind: 'image'): { header: ImageResultHeader; body: Buffer };
export function decodeResult(bytes: Buffer): { header: ResultHeader; body: Buffer } {
  const length = bytes.readUInt32LE(0);
  return {
    header: JSON.parse(bytes.toString('utf8', 4, 4 + length)) as ResultHeader,
    body: bytes.subarray(4 + length),
  };
}
