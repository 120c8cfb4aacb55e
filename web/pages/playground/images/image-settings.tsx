import { useMessages } from '../../../lib/language.tsx';
import type { Model } from '../../../lib/models.ts';
import { Field, Select } from '../../../ui/field.tsx';
import { SpecSelect } from '../chat/chat-settings.tsx';
import type en from '../messages.en.ts';
import type { ImageOptions } from './image-state.ts';

/** The options of images that the model has. */
export function ImageSettings({
  options,
  model,
  onChange,
}: {
  readonly options: ImageOptions;
  readonly model: Model;
  readonly onChange: (changes: Partial<ImageOptions>) => void;
}) {
  const t = useMessages<typeof en>();
  const standard = { value: '', label: t('byDefault') } as const;
  const sizes = model.size ?? [];
  const counts = Array.from({ length: model.max_image_count ?? 1 }, (_, i) => String(i + 1));
  return (
    <div class="playground-fields">
      {sizes.length > 0 ? (
        <Select
          label={t('size')}
          value={sizes.includes(options.size) ? options.size : ''}
          choices={[standard, ...sizes.map((size) => ({ value: size, label: size.replace('x', ' × ') }))]}
          onChoose={(size) => onChange({ size })}
        />
      ) : (
        <Field
          label={t('size')}
          placeholder="1024x1024"
          value={options.size}
          onInput={({ currentTarget: { value } }) => onChange({ size: value.trim() })}
        />
      )}
      <SpecSelect
        label={t('quality')}
        spec={model.image_quality}
        value={options.quality}
        onChoose={(quality) => onChange({ quality })}
      />
      {counts.length > 1 && (
        <Select
          label={t('imageCount')}
          value={counts.includes(options.n) ? options.n : '1'}
          choices={counts.map((value) => ({ value, label: value }))}
          onChoose={(n) => onChange({ n: n === '1' ? '' : n })}
        />
      )}
      <details class="playground-more">
        <summary>{t('moreOptions')}</summary>
        <div class="playground-fields">
          <Field
            label={t('negativePrompt')}
            hint={t('negativePromptText')}
            value={options.negative_prompt}
            onInput={({ currentTarget: { value } }) => onChange({ negative_prompt: value })}
          />
          <Field
            label={t('style')}
            hint={t('styleText')}
            value={options.style}
            onInput={({ currentTarget: { value } }) => onChange({ style: value })}
          />
          <Select
            label={t('background')}
            value={options.background}
            choices={[
              standard,
              { value: 'transparent', label: t('transparent') },
              { value: 'opaque', label: t('opaque') },
            ]}
            onChoose={(background) => onChange({ background })}
          />
          <Select
            label={t('format')}
            value={options.output_format}
            choices={[
              standard,
              ...(['png', 'jpeg', 'webp'] as const).map((value) => ({ value, label: value.toUpperCase() })),
            ]}
            onChoose={(format) => onChange({ output_format: format })}
          />
        </div>
      </details>
    </div>
  );
}
