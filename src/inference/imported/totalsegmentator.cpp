#include "inference/imported/totalsegmentator.h"

#include <sstream>

namespace cytra::inference {
namespace {

/// Groups of models: spacing, tile_step, whether they are the parts of a task, and names; ^: images
/// are cropped, *: labels are changed.
constexpr const char* kModels = R"(
3 3 3 0.8 alone 297_TotalSegmentator_total_3mm_1559subj 836_TotalSegmentator_total_3mm_1559subj
852_TotalSegMRI_total_3mm_1088subj ; 6 6 6 0.8 alone 298_TotalSegmentator_total_6mm_1559subj
837_TotalSegmentator_total_6mm_1559subj 853_TotalSegMRI_total_6mm_1088subj ; 1.5 1.5 1.5 0.8 parts
291_TotalSegmentator_part1_organs_1559subj 292_TotalSegmentator_part2_vertebrae_1532subj
293_TotalSegmentator_part3_cardiac_1559subj 294_TotalSegmentator_part4_muscles_1559subj
295_TotalSegmentator_part5_ribs_1559subj ; 1.5 1.5 1.5 0.8 parts
831_TotalSegmentator_part1_organs_1830subj 832_TotalSegmentator_part2_vertebrae_1559subj
833_TotalSegmentator_part3_cardiac_1830subj 834_TotalSegmentator_part4_muscles_1830subj
835_TotalSegmentator_part5_ribs_1559subj ; 1.5 1.5 1.5 0.8 parts
850_TotalSegMRI_part1_organs_1088subj 851_TotalSegMRI_part2_muscles_1088subj ; 6 6 6 0.5 alone
300_body_6mm_1559subj* 598_mri_body_6mm_139subj ; 1.5 1.5 1.5 0.5 alone 299_body_1559subj*
303_face_1559subj 304_appendicular_bones_ext_1559subj* 305_vertebrae_discs_1559subj
343_mediastinum_1786subj 481_tissue_1559subj 485_tissue_4types_1559subj 527_breasts_1559subj
597_mri_body_139subj 710_renal_arteries_127subj* 756_mri_vertebrae_1076subj
789_kidney_cyst_501subj^* 803_TotalSegmentator_vertebrae_inner_1559subj*
855_TotalSegMRI_appendicular_bones_1088subj 856_TotalSegMRI_face_1088subj*
857_TotalSegMRI_thigh_shoulder_1088subj 913_lung_nodules^ 925_MRI_tissue_subset_903subj ; 0.75 0.75
1 0.5 alone 591_ct_liver_lesions_842subj^ 775_head_glands_cavities_492subj^
776_headneck_bones_vessels_492subj^ 777_head_muscles_492subj^ 952_abdominal_muscles_167subj^
957_TotalSegmentator_highres_part1_organs_cropBody_127subj ; 0.703125 0.703125 1 0.5 alone
117_lung_airways_arteries_veins_282subj^ ; 0 0 0 0.5 alone 150_icb_v0^ 258_lung_vessels_248subj^
260_hip_implant_71subj^ 301_heart_highres_1559subj^* 315_thoraxCT^ ; 0.75 0.75 1 0.5 parts
778_headneck_muscles_part1_492subj^ 779_headneck_muscles_part2_492subj^ ; 0.47251562774181366
0.47251562774181366 0.8500002026557922 0.5 alone 351_oculomotor_muscles_18subj^ ; 0.4384765625
0.4345703125 1 0.5 alone 552_ventricle_parts_38subj^ ; 0.8046879768371582 0.8046879768371582 1.5
0.5 alone 570_ct_liver_segments^ ; 1.1250001788139343 1.1875 3 0.5 alone
576_mri_liver_segments_120subj^ ; 0.8603515625 0.857421875 1 0.5 alone
589_ct_mri_liver_lesions_750subj^ ; 0.5 0.5 0.5 0.5 alone 113_ToothFairy3^ 115_mandible^ ; 0.390625
0.390625 0.5000016391277313 0.5 alone 615_MAXIMUS ; 0.5 0.5 1 0.5 alone 409_neuro_550subj^ ; 0.7
0.7 0.7 0.5 alone 507_coronary_arteries_cm_nativ_400subj^
509_coronary_arteries_cm_nativ_400subj_SKELETON^ 920_aortic_sinuses_cm_nativ_400subj^ ; 0.8 0.8 0.8
0.5 alone 713_annulus_proper_48subj 716_aorta_true_false_lumen_171subj ; 0.7802734375 0.7802734375
1 0.5 alone 514_annulus_pulmonary_70subj ;)";

}  // namespace

std::optional<TotalSegmentatorModel> totalsegmentator_model(const std::string& folder) {
  std::istringstream words(kModels);
  TotalSegmentatorModel model;
  std::string kind, name;
  while (words >> model.spacing_mm[0] >> model.spacing_mm[1] >> model.spacing_mm[2] >>
         model.tile_step >> kind) {
    bool is_found = false;
    for (model.parts.clear(); words >> name && name != ";";) {
      const std::string marks = name.substr(name.find_last_not_of("^*") + 1);
      model.parts.push_back("Dataset" + name.substr(0, name.size() - marks.size()));
      if (model.parts.back() != folder) continue;
      is_found = true;
      model.is_cropped = marks.find('^') != std::string::npos;
      model.is_changed = marks.find('*') != std::string::npos;
    }
    if (!is_found) continue;
    if (kind == "alone") model.parts.clear();
    return model;
  }
  return {};
}

}  // namespace cytra::inference
