import { useRef, useState } from 'preact/hooks';
import { useMessages, useCommon } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { Dialog, DialogActions } from '../../../ui/dialog.tsx';
import { Field } from '../../../ui/field.tsx';
import type en from '../messages.en.ts';
import type { Picture } from '../shared/pictures.ts';
import { maskOfStrokes } from './mask.ts';

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A brush over a picture: what is painted may change. Those who cannot paint upload a mask instead. */
export function MaskDialog({
  picture,
  isOpen,
  onClose,
  onSave,
}: {
  readonly picture: Picture;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onSave: (mask: string) => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const canvas = useRef<HTMLCanvasElement>(null);
  const last = useRef<Point | null>(null);
  const [brushPercent, setBrushPercent] = useState(8);
  const [isPainted, setIsPainted] = useState(false);

  const paint = (event: PointerEvent): void => {
    const element = canvas.current!;
    const { left, top, width } = element.getBoundingClientRect();
    const scale = element.width / width;
    const point = { x: (event.clientX - left) * scale, y: (event.clientY - top) * scale };
    const context = element.getContext('2d')!;
    context.lineCap = 'round';
    context.lineWidth = (Math.max(element.width, element.height) * brushPercent) / 100;
    context.strokeStyle = getComputedStyle(element).color;
    context.beginPath();
    context.moveTo(last.current?.x ?? point.x, last.current?.y ?? point.y);
    context.lineTo(point.x, point.y);
    context.stroke();
    last.current = point;
    setIsPainted(true);
  };
  const clear = (): void => {
    const element = canvas.current!;
    element.getContext('2d')!.clearRect(0, 0, element.width, element.height);
    setIsPainted(false);
  };
  return (
    <Dialog title={t('paintMask')} size="large" isOpen={isOpen} onClose={onClose} isGuarded>
      <p class="soft">{t('paintText')}</p>
      <div class="images-mask">
        <img src={picture.url} alt={picture.name} width={picture.width} height={picture.height} />
        <canvas
          ref={canvas}
          width={picture.width}
          height={picture.height}
          aria-hidden="true"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            last.current = null;
            paint(event);
          }}
          onPointerMove={(event) => {
            if (event.buttons !== 0) paint(event);
          }}
        />
      </div>
      <Field
        label={t('brush')}
        type="range"
        min={2}
        max={25}
        value={brushPercent}
        onInput={({ currentTarget: { value } }) => setBrushPercent(Number(value))}
      />
      <DialogActions>
        <Button onClick={clear} disabled={!isPainted}>
          {t('clearMask')}
        </Button>
        <Button onClick={onClose}>{common('cancel')}</Button>
        <Button
          kind="primary"
          disabled={!isPainted}
          onClick={() => {
            maskOfStrokes(canvas.current!, picture).then(onSave, () => onClose());
          }}
        >
          {common('save')}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
