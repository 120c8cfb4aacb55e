import type { ImageType } from '../../shared/contract/image-type.ts';
import type { ImageOptions } from '../../shared/work/queue/job-kinds.ts';

/** Formats that images are encoded in. */
export type OutputFormat = NonNullable<ImageOptions['outputFormat']>;

/** A request to an image process. The file is within the limits that can be read from its bytes. */
export type ImageWork = CheckWork | ReencodeWork;

export interface CheckWork {
  readonly kind: 'check';
  readonly bytes: Buffer;
  readonly type: ImageType;
}

export interface ReencodeWork {
  readonly kind: 'reencode';
  readonly bytes: Buffer;
  readonly type: ImageType;
  readonly format: OutputFormat;
  readonly quality: number;
}

export interface EncodedImage {
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
}

/** Null for a check. */
export type WorkResult = EncodedImage | null;

/** The reply of an image process. */
export interface ImageReply {
  /** `undecodable` if the decoder reports an error. */
  readonly result: WorkResult | 'undecodable';
  /** Memory of the process afterwards. */
  readonly rssBytes: number;
}
