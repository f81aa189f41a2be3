// Runs Cytra's predict on the open image and puts the objects' outlines into the ROI Manager.
// Install: Plugins > Install..., choose this file. Programs: on PATH, or name predict below.
#@ String (label = "predict", value = "predict") program
#@ File (label = "Model", style = "open") model
#@ String (label = "Device", choices = {"auto", "cpu", "gpu"}) device

folder = getDirectory("temp") + "cytra_" + d2s(getTime(), 0) + File.separator;
File.makeDirectory(folder);
id = getImageID();
// A copy, so that the open image keeps its name and its file.
run("Duplicate...", "title=cytra_image duplicate");
saveAs("Tiff", folder + "image.tif");
close();
selectImage(id);
exec(program, "checkpoint.ckpt_path=" + model, "data.path=" + folder + "image.tif", "paths.output_dir=" + folder + "out", "predict.contours=imagej_roi", "trainer.accelerator=" + device, "data.on_error=fail");
found = "";
names = newArray(0);
if (File.exists(folder + "out")) names = getFileList(folder + "out");
for (i = 0; i < names.length; i++)
	if (endsWith(names[i], "_rois.zip")) found = folder + "out" + File.separator + names[i];
if (found == "")
	exit("Cytra found no objects, or failed; its messages are in " + folder + "out");
roiManager("open", found);
roiManager("show all");
