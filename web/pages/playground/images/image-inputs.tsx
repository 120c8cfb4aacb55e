import { useState } from 'preact/hooks';
import brush from '@phosphor-icons/core/assets/regular/paint-brush.svg?raw';
import { useMessages } from '../../../lib/language.tsx';
import type { Model } from '../../../lib/models.ts';
import { Button } from '../../../ui/button.tsx';
import { SvgIcon } from '../../../ui/icon.tsx';
import type en from '../messages.en.ts';
import { PictureButton, PictureList, usePictures } from '../shared/picture-list.tsx';
import { listPictures, type Picture } from '../shared/pictures.ts';
import type { ImageState } from './image-state.ts';
import { fitMask } from './mask.ts';
import { MaskDialog } from './mask-dialog.tsx';

/** The pictures to edit, and which part of the first may change. */
export function ImageInputs({
  model,
  state: { pictures, mask },
  onChange,
}: {
  readonly model: Model;
  readonly state: ImageState;
  readonly onChange: (changes: Partial<ImageState>) => void;
}) {
  const t = useMessages<typeof en>();
  const [isPainting, setIsPainting] = useState(false);
  const [maskError, setMaskError] = useState<string | null>(null);
  const [first] = pictures;
  const change = (next: readonly Picture[]): void =>
    // A mask belongs to the first picture.
    onChange({ pictures: next, ...(next[0] === first ? {} : { mask: null }) });
  const { add, error } = usePictures(pictures, model.max_file_count, change);
  const uploadMask = (files: readonly File[]): void => {
    setMaskError(null);
    fitMask(files[0]!, first!).then(
      (fitted) => onChange({ mask: fitted }),
      () => setMaskError(t('notAPicture', { names: files[0]!.name })),
    );
  };
  return (
    <div
      class="images-inputs"
      role="group"
      aria-label={t('inputs')}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add(listPictures(event.dataTransfer));
      }}
    >
      {first === undefined ? (
        <p class="images-drop small soft">{t('inputsText')}</p>
      ) : (
        <PictureList pictures={pictures} onChange={change} />
      )}
      <div class="images-inputs-actions">
        <PictureButton label={t('addInput')} isMultiple={model.max_file_count !== 1} onChoose={add}>
          {t('addInput')}
        </PictureButton>
        {first !== undefined && (
          <>
            <Button onClick={() => setIsPainting(true)}>
              <SvgIcon svg={brush} />
              {t(mask === null ? 'paintMask' : 'changeMask')}
            </Button>
            <PictureButton label={t('uploadMask')} isMultiple={false} onChoose={uploadMask}>
              {t('uploadMask')}
            </PictureButton>
            {mask !== null && (
              <Button kind="quiet" icon="close" onClick={() => onChange({ mask: null })}>
                {t('removeMask')}
              </Button>
            )}
          </>
        )}
      </div>
      {first !== undefined && <p class="small soft">{t(mask === null ? 'maskText' : 'maskSet')}</p>}
      {(error ?? maskError) !== null && (
        <p class="error-text" role="alert">
          {error ?? maskError}
        </p>
      )}
      {first !== undefined && (
        <MaskDialog
          picture={first}
          isOpen={isPainting}
          onClose={() => setIsPainting(false)}
          onSave={(painted) => {
            onChange({ mask: painted });
            setIsPainting(false);
          }}
        />
      )}
    </div>
  );
}
