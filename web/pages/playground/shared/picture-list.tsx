import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import imageIcon from '@phosphor-icons/core/assets/regular/image.svg?raw';
import { useMessages } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { SvgIcon } from '../../../ui/icon.tsx';
import type en from '../messages.en.ts';
import { pictureTypes, readPicture, type Picture } from './pictures.ts';

/** Reads chosen files into pictures, and says which it could not read. */
export function usePictures(
  pictures: readonly Picture[],
  maxCount: number | null,
  onChange: (pictures: readonly Picture[]) => void,
): { readonly add: (files: readonly File[]) => void; readonly error: string | null } {
  const t = useMessages<typeof en>();
  const [error, setError] = useState<string | null>(null);
  const readAll = async (files: readonly File[]): Promise<void> => {
    const results = await Promise.allSettled(files.map(readPicture));
    const read = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const unread = files.filter((_, i) => results[i]!.status === 'rejected').map(({ name }) => name);
    const all = [...pictures, ...read];
    const isTooMany = maxCount !== null && all.length > maxCount;
    onChange(isTooMany ? all.slice(0, maxCount) : all);
    if (unread.length > 0) setError(t('notAPicture', { names: unread.join(', ') }));
    else setError(isTooMany ? t('tooManyPictures', { count: maxCount }) : null);
  };
  return {
    error,
    add: (files) => {
      if (files.length > 0) readAll(files).catch(() => setError(t('failed')));
    },
  };
}

/** A button that opens the browser's choice of files. */
export function PictureButton({
  label,
  isMultiple,
  onChoose,
  children,
}: {
  readonly label: string;
  readonly isMultiple: boolean;
  readonly onChoose: (files: readonly File[]) => void;
  readonly children?: ComponentChildren;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button
        kind={children === undefined ? 'quiet' : 'secondary'}
        aria-label={label}
        title={label}
        class={children === undefined ? 'icon-only' : ''}
        onClick={() => input.current?.click()}
      >
        <SvgIcon svg={imageIcon} size={20} />
        {children}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={label}
        accept={pictureTypes.join(',')}
        multiple={isMultiple}
        onChange={({ currentTarget }) => {
          onChoose(Array.from(currentTarget.files ?? []));
          currentTarget.value = '';
        }}
      />
    </>
  );
}

/** Small pictures, with a button each to remove them. */
export function PictureList({
  pictures,
  onChange,
}: {
  readonly pictures: readonly Picture[];
  /** Without it, they cannot be removed. */
  readonly onChange?: (pictures: readonly Picture[]) => void;
}) {
  const t = useMessages<typeof en>();
  if (pictures.length === 0) return null;
  return (
    <ul class="playground-pictures">
      {pictures.map((picture, i) => (
        <li key={`${i}-${picture.name}`}>
          <img src={picture.url} alt={picture.name} width={picture.width} height={picture.height} />
          {onChange !== undefined && (
            <Button
              size="small"
              icon="close"
              aria-label={t('removePicture', { name: picture.name })}
              onClick={() => onChange(pictures.filter((_, other) => other !== i))}
            />
          )}
        </li>
      ))}
    </ul>
  );
}
