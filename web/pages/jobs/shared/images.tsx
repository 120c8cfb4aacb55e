import { imageSource } from '../../../lib/image-source.ts';
import { useMessages } from '../../../lib/language.tsx';
import type texts from './texts.en.ts';

interface ImageData {
  readonly url?: string | null | undefined;
  readonly b64_json?: string | null | undefined;
}

/** Returns where images of a response are loaded from, in its order. */
export function listImageSources(data: readonly ImageData[]): string[] {
  return data.flatMap(({ url, b64_json: base64 }) => {
    if (typeof url === 'string') return [imageSource(url)];
    return typeof base64 === 'string' ? [`data:${findMediaType(base64)};base64,${base64}`] : [];
  });
}

/** The first bytes of JPEG and WebP, in base64. Everything else is shown as PNG, whatever it is. */
const findMediaType = (base64: string): string =>
  base64.startsWith('/9j/') ? 'image/jpeg' : base64.startsWith('UklGR') ? 'image/webp' : 'image/png';

/** Small images, each a link to the whole one. */
export function Thumbnails({
  sources,
  size,
}: {
  readonly sources: readonly string[];
  readonly size: 'small' | 'large';
}) {
  const t = useMessages<typeof texts>();
  return (
    <ul class={`work-images ${size}`}>
      {sources.map((source, i) => (
        <li key={source}>
          {source.startsWith('data:') ? (
            <img src={source} alt={t('openImage', { number: i + 1 })} />
          ) : (
            <a href={source} target="_blank" rel="noopener" aria-label={t('openImage', { number: i + 1 })}>
              <img src={source} alt="" loading="lazy" />
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}
